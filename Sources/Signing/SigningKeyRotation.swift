public import Base
import Tokens

/// When the server makes the next signing key by itself. It is a value without keys and clock.
///
/// The newest key decides, because each older key has a successor:
///
/// | the newest key | the next key is made |
/// |---|---|
/// | signs, or waits for its time to sign | `publishAhead` before it has signed for `period` |
/// | has a time that no clock gives now: the clock was ahead, and was set back since | at once |
/// | is one of as many keys as verifiers read | when the oldest of them has retired, and not sooner than above |
public struct SigningKeyRotation: Sendable, Equatable {
    /// From the time when a key begins to sign until its successor does. Zero: keys are rotated by hand only.
    public let period: Duration

    public static let byHand = SigningKeyRotation(period: .zero)
    /// The longest time that a key is published before it signs: ours, and the longest that an admin can ask for.
    public static let publishAheadMax = Duration.days(7)

    public init(period: Duration) { self.period = max(.zero, period) }

    /// How long verifiers are given to fetch the next key.
    public var publishAhead: Duration { min(Self.publishAheadMax, period / 2) }

    /// When the successor of the newest key is made; nil if the server makes none. The time may be over: then the key
    /// is made in the next sweep that finds room for it.
    public func nextKeyAt(createdAt: Timestamp, signsFrom: Timestamp, at now: Timestamp) -> Timestamp? {
        guard period > .zero else { return nil }
        // The nodes of a cluster, and a clock that is corrected, may differ by the slack.
        let latest = now + TimeKeeping.slack
        if createdAt > latest || signsFrom > latest + Self.publishAheadMax { return now }
        return signsFrom + (period - publishAhead)
    }

    /// Whether the next key is to be made now. `keyCount` is the number of keys that are not revoked.
    func isDue(after newest: SigningKeyTimes, keyCount: Int, at now: Timestamp) -> Bool {
        guard keyCount < KeySet.countMax,
            let time = nextKeyAt(createdAt: newest.createdAt, signsFrom: newest.signsFrom, at: now)
        else { return false }
        return time <= now
    }
}
