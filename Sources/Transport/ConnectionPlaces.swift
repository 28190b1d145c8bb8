import Base

/// The server's places for connections, and which connection has each. Pure: no socket, no clock; one owner, not
/// thread-safe.
///
/// A connection cannot show its credential before it is accepted. So that strangers cannot keep others out, a
/// connection without a credential holds its place only until somebody else needs it: the oldest one gives way, first
/// within the same address, then among all. A connection with a credential is never displaced.
///
///     var places = ConnectionPlaces(limits: limits)
///     switch places.admit(from: "192.0.2.7") {
///     case .admitted(let id, let displaced): …   // close `displaced`, serve the new one as `id`
///     case .refused: …                           // every place belongs to somebody with a credential
///     }
struct ConnectionPlaces {
    enum Admission: Equatable {
        /// `displaced` have lost their place already; the caller closes them.
        case admitted(id: UInt64, displaced: [UInt64])
        case refused
    }

    private struct Place {
        let address: Text
        /// The connection's turn to give way, among those without a credential. Nil for a connection with a credential.
        var turn: UInt64?

        var isAuthenticated: Bool { turn == nil }
    }

    /// Turns to give way, the first one first. The turns of connections that left or showed a credential stay until
    /// they outnumber the others, so that each turn costs a constant time.
    private struct Line {
        private var turns: [(id: UInt64, turn: UInt64)] = []
        private var start = 0
        /// The turns of connections that are still without a credential.
        private(set) var count = 0

        mutating func append(_ id: UInt64, _ turn: UInt64, in places: [UInt64: Place]) {
            turns.append((id, turn))
            count += 1
            guard turns.count > 2 * count + 8 else { return }
            turns = turns[start...].filter { places[$0.id]?.turn == $0.turn }
            start = 0
        }

        mutating func left() { count -= 1 }

        /// The connection that has been without a credential for longest.
        mutating func first(in places: [UInt64: Place]) -> UInt64? {
            while start < turns.count {
                let (id, turn) = turns[start]
                if places[id]?.turn == turn { return id }
                start += 1
            }
            return nil
        }
    }

    private struct AddressUse {
        var count = 0
        /// At most `connectionsUnauthenticatedPerAddressMax`.
        var unauthenticated = Line()
    }

    private let limits: Limits
    private var places: [UInt64: Place] = [:]
    private var addresses: [Text: AddressUse] = [:]
    private var unauthenticated = Line()
    private var lastID: UInt64
    private var lastTurn: UInt64 = 0

    /// The first connection gets the id after `id`.
    init(limits: Limits, after id: UInt64 = 0) {
        self.limits = limits
        self.lastID = id
    }

    /// The most connections that may have lost their place and are not closed yet. Above it, new connections wait.
    static func leavingMax(_ limits: Limits) -> Int { max(1, min(64, limits.connectionsMax / 8)) }

    var count: Int { places.count }
    var unauthenticatedCount: Int { unauthenticated.count }

    /// A new connection without a credential. `address` is common to all connections of one peer.
    mutating func admit(from address: Text) -> Admission {
        var displaced: [UInt64] = []
        let isAddressFull =
            addresses[address]?.count ?? 0 >= limits.connectionsPerAddressMax
            || unauthenticatedCount(of: address) >= limits.connectionsUnauthenticatedPerAddressMax
        if isAddressFull {
            guard let oldest = addresses[address]?.unauthenticated.first(in: places) else { return .refused }
            remove(oldest)
            displaced.append(oldest)
        }
        if places.count >= limits.connectionsMax {
            guard let oldest = unauthenticated.first(in: places) else { return .refused }
            remove(oldest)
            displaced.append(oldest)
        }
        lastID += 1
        places[lastID] = Place(address: address)
        addresses[address, default: AddressUse()].count += 1
        noteUnauthenticated(lastID, address)
        return .admitted(id: lastID, displaced: displaced)
    }

    /// Does nothing for an id that has lost its place.
    mutating func authenticated(_ id: UInt64) {
        guard let place = places[id], !place.isAuthenticated else { return }
        places[id]?.turn = nil
        forgetUnauthenticated(place.address)
    }

    /// Makes the connection the youngest of those without a credential. Returns the connections that give way when its
    /// address now has too many: many connections of one proxy may lose the same credential at once.
    mutating func lostCredential(_ id: UInt64) -> [UInt64] {
        guard let place = places[id], place.isAuthenticated else { return [] }
        noteUnauthenticated(id, place.address)
        guard unauthenticatedCount(of: place.address) > limits.connectionsUnauthenticatedPerAddressMax,
            let oldest = addresses[place.address]?.unauthenticated.first(in: places)
        else { return [] }
        remove(oldest)
        return [oldest]
    }

    mutating func remove(_ id: UInt64) {
        guard let place = places.removeValue(forKey: id) else { return }
        if !place.isAuthenticated { forgetUnauthenticated(place.address) }
        addresses[place.address]?.count -= 1
        if addresses[place.address]?.count == 0 { addresses[place.address] = nil }
    }

    private func unauthenticatedCount(of address: Text) -> Int { addresses[address]?.unauthenticated.count ?? 0 }

    private mutating func noteUnauthenticated(_ id: UInt64, _ address: Text) {
        lastTurn += 1
        places[id]?.turn = lastTurn
        unauthenticated.append(id, lastTurn, in: places)
        addresses[address]?.unauthenticated.append(id, lastTurn, in: places)
    }

    private mutating func forgetUnauthenticated(_ address: Text) {
        unauthenticated.left()
        addresses[address]?.unauthenticated.left()
    }
}
