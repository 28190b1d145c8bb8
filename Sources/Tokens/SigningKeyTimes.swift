public import Base

/// The times between which a signing key signs and verifies. It is a value without key material or clock.
///
/// Keys are ordered by a number that they get when they are made, never by time: two keys may be made at one moment,
/// and a clock may be set back between them.
///
/// | at | a key |
/// |---|---|
/// | its making | is published, so that verifiers have fetched it by the time it signs |
/// | `signsFrom` | signs, unless a newer one does; from then on no older key signs |
/// | `retiresAt` | verifies nothing any more; given when a newer key is made |
public struct SigningKeyTimes: Sendable, Equatable {
    public var sequence: Int64
    public var createdAt: Timestamp
    public var signsFrom: Timestamp
    /// When the key stops verifying. Nil for the newest key.
    public var retiresAt: Timestamp?

    public init(sequence: Int64, createdAt: Timestamp, signsFrom: Timestamp, retiresAt: Timestamp? = nil) {
        self.sequence = sequence
        self.createdAt = createdAt
        self.signsFrom = signsFrom
        self.retiresAt = retiresAt
    }

    package func isRetired(at now: Timestamp) -> Bool { retiresAt.map { $0 <= now } ?? false }

    /// A key that signs from the moment it was made has begun, even if the clock was set back since.
    package func hasBegun(at now: Timestamp) -> Bool { signsFrom <= max(now, createdAt) }

    /// The key that signs, among keys in the order newest first: the newest whose time has come.
    ///
    /// `hasSigned` is the number of the newest key known to have signed. No older key takes over from it, and it keeps
    /// signing if the clock says that its time is still to come. If it is gone, the next key begins early.
    package static func signing<Keys: BidirectionalCollection>(
        in newestFirst: Keys, at now: Timestamp, hasSigned: Int64, _ times: (Keys.Element) -> SigningKeyTimes
    ) -> Keys.Element? {
        func isLive(_ key: Keys.Element) -> Bool {
            times(key).sequence >= hasSigned && !times(key).isRetired(at: now)
        }
        let begun = newestFirst.first { key in
            isLive(key) && (times(key).hasBegun(at: now) || times(key).sequence == hasSigned)
        }
        return begun ?? newestFirst.last(where: isLive) ?? newestFirst.last
    }

    /// The time at which the newest key retires after a successor was made: when the last token that it may sign has
    /// expired, plus a margin for clocks. `lastIssuedAt` is the time of the latest known token, which is after
    /// `signsFrom` of the successor if the clock was set back.
    package func retirement(
        bySuccessorFrom successorSignsFrom: Timestamp, lastIssuedAt: Timestamp, lifetime: Duration
    ) -> Timestamp {
        max(successorSignsFrom, lastIssuedAt, createdAt) + lifetime + Self.retirementMargin
    }

    package static let retirementMargin = Duration.hours(1)

    /// Numbers keys from before there were numbers, below all existing numbers: replaced keys first, then by their
    /// times. `keys` holds the ids, so that keys of one moment have the same order on every node.
    package static func numbered(_ keys: [(id: Text, times: SigningKeyTimes)]) -> [SigningKeyTimes] {
        let unnumbered = keys.indices.filter { keys[$0].times.sequence == 0 }.sorted { left, right in
            let (one, other) = (keys[left].times, keys[right].times)
            if (one.retiresAt == nil) != (other.retiresAt == nil) { return other.retiresAt == nil }
            if one.createdAt != other.createdAt { return one.createdAt < other.createdAt }
            if one.signsFrom != other.signsFrom { return one.signsFrom < other.signsFrom }
            return keys[left].id.bytes.lexicographicallyPrecedes(keys[right].id.bytes)
        }
        var times = keys.map(\.times)
        for (place, index) in unnumbered.enumerated() { times[index].sequence = Int64(place - unnumbered.count) }
        return times
    }
}
