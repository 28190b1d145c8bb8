import Base

/// The handshakes in flight, which hold more memory than a connection that is established. Pure; one owner.
///
/// A handshake above the bound is not refused: the oldest one gives way, of the same address first. So a peer that
/// begins handshakes and does not go on keeps nobody out.
struct HandshakePlaces {
    private let countMax: Int
    private let countPerAddressMax: Int
    /// The oldest first.
    private var handshakes: [(id: UInt64, address: Text)] = []

    init(limits: Limits) {
        countMax = limits.tlsHandshakesMax
        countPerAddressMax = limits.tlsHandshakesPerAddressMax
    }

    var count: Int { handshakes.count }

    /// Returns the connection that has lost its place to this one.
    mutating func began(_ id: UInt64, from address: Text) -> UInt64? {
        handshakes.append((id, address))
        let isAddressFull = handshakes.count(where: { $0.address == address }) > countPerAddressMax
        guard isAddressFull || handshakes.count > countMax,
            let index = handshakes.firstIndex(where: { !isAddressFull || $0.address == address })
        else { return nil }
        return handshakes.remove(at: index).id
    }

    /// Does nothing for a handshake that is not listed.
    mutating func ended(_ id: UInt64) { handshakes.removeAll { $0.id == id } }
}
