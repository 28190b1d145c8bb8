import Base

/// Who has one of the server's places for connections. Pure: no socket, no clock; one owner, not thread-safe.
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
        var isAuthenticated = false
    }

    private struct AddressUse {
        var count = 0
        /// Oldest first; at most `connectionsUnauthenticatedPerAddressMax`.
        var unauthenticated: [UInt64] = []
    }

    private let limits: Limits
    private var places: [UInt64: Place] = [:]
    private var addresses: [Text: AddressUse] = [:]
    /// Those without a credential, oldest first, among ids that are no longer such.
    private var queue: [UInt64] = []
    private var queueStart = 0
    private(set) var unauthenticatedCount = 0
    private var lastID: UInt64 = 0

    init(limits: Limits) { self.limits = limits }

    /// So many connections may have lost their place and not be closed yet; new ones wait meanwhile.
    static func leavingMax(_ limits: Limits) -> Int { max(1, min(64, limits.connectionsMax / 8)) }

    var count: Int { places.count }

    /// A new connection without a credential. `address` is one that all connections of one peer have in common.
    mutating func admit(from address: Text) -> Admission {
        var displaced: [UInt64] = []
        let use = addresses[address] ?? AddressUse()
        let isAddressFull =
            use.count >= limits.connectionsPerAddressMax
            || use.unauthenticated.count >= limits.connectionsUnauthenticatedPerAddressMax
        if isAddressFull {
            guard let oldest = use.unauthenticated.first else { return .refused }
            remove(oldest)
            displaced.append(oldest)
        }
        if places.count >= limits.connectionsMax {
            guard let oldest = oldestUnauthenticated() else { return .refused }
            remove(oldest)
            displaced.append(oldest)
        }
        lastID += 1
        places[lastID] = Place(address: address)
        addresses[address, default: AddressUse()].count += 1
        noteUnauthenticated(lastID, address)
        return .admitted(id: lastID, displaced: displaced)
    }

    /// Nothing for an id that has lost its place.
    mutating func authenticated(_ id: UInt64) {
        guard let place = places[id], !place.isAuthenticated else { return }
        places[id]?.isAuthenticated = true
        forgetUnauthenticated(id, place.address)
    }

    mutating func lostCredential(_ id: UInt64) {
        guard let place = places[id], place.isAuthenticated else { return }
        places[id]?.isAuthenticated = false
        noteUnauthenticated(id, place.address)
    }

    mutating func remove(_ id: UInt64) {
        guard let place = places.removeValue(forKey: id) else { return }
        if !place.isAuthenticated { forgetUnauthenticated(id, place.address) }
        addresses[place.address]?.count -= 1
        if addresses[place.address]?.count == 0 { addresses[place.address] = nil }
    }

    private mutating func noteUnauthenticated(_ id: UInt64, _ address: Text) {
        unauthenticatedCount += 1
        addresses[address, default: AddressUse()].unauthenticated.append(id)
        queue.append(id)
        // What is left of others is cleared away before it is half of the queue: a constant cost per connection.
        if queue.count > 2 * unauthenticatedCount + 64 {
            queue = queue[queueStart...].filter { places[$0]?.isAuthenticated == false }
            queueStart = 0
        }
    }

    private mutating func forgetUnauthenticated(_ id: UInt64, _ address: Text) {
        unauthenticatedCount -= 1
        addresses[address]?.unauthenticated.removeAll { $0 == id }
    }

    private mutating func oldestUnauthenticated() -> UInt64? {
        while queueStart < queue.count {
            let id = queue[queueStart]
            if places[id]?.isAuthenticated == false { return id }
            queueStart += 1
        }
        return nil
    }
}
