import Base

/// The pauses between the streams of a feed. The first ones are short, because no revocations arrive meanwhile.
///
/// They grow until a stream has lived for a while. A server that answers each stream and then ends it, with an error or
/// without, is therefore asked ever less often.
struct FeedPauses: Sendable {
    static let longest = Duration.seconds(5)

    /// The streams since the last one that lived for a while, that one included. At most `countMax`.
    private var count = 0
    /// When the present stream brought its first message.
    private var heardAt: Instant?

    private static let countMax = 7

    /// The present stream brought a message.
    mutating func heard(at now: Instant) {
        if heardAt == nil { heardAt = now }
    }

    /// The present stream is over. Returns the longest time to wait before the next one.
    mutating func ended(at now: Instant) -> Duration {
        let life = heardAt.map { Duration.nanoseconds(now.nanoseconds(since: $0)) } ?? .zero
        heardAt = nil
        count = life >= Self.longest ? 1 : min(count + 1, Self.countMax)
        return min(Self.longest, .milliseconds(50 << count))
    }
}
