import Base

/// The server's time as the messages of a feed tell it, and how old what they tell may be.
///
/// The time goes on with a clock of this machine that cannot be set, from the highest time that was heard: a node of a
/// cluster that is cut off goes on sending messages, all with the time at which it was.
struct FeedClock: Sendable {
    /// If the feed told lower times for so long, the server's clock was corrected, or this machine's clock runs fast.
    static let correctionTime = Duration.minutes(10)
    /// The server leaves old revocations out of a snapshot, with a margin of an hour. If its clock was that far ahead,
    /// they were not old, and a correction makes their tokens good again.
    static let correctionMax = Duration.minutes(30)

    /// A time that the server told, and our own time when it came.
    private struct Reading: Sendable {
        let server: Timestamp
        let local: Instant

        func predicted(at now: Instant) -> Timestamp { server + passed(until: now) }
        func passed(until now: Instant) -> Duration { .nanoseconds(max(0, now.nanoseconds(since: local))) }
    }

    /// The reading from which the time goes on.
    private var base: Reading
    private var newest: Reading
    /// The readings below the time, since the last reading at or above it: the first of them, and the one that predicts
    /// the highest time.
    private var lower: (first: Reading, highest: Reading)?

    /// Begins with the time of a first message.
    init(_ server: Timestamp, at local: Instant) {
        base = Reading(server: server, local: local)
        newest = base
    }

    func time(at now: Instant) -> Timestamp { base.predicted(at: now) }

    /// How long revocations may have been missed: since the last message, or since the time that it told.
    func staleness(at now: Instant) -> Duration { max(newest.passed(until: now), time(at: now) - newest.server) }

    /// Returns whether the server's time is lower by more than `correctionMax`. Then the time goes on as before: a
    /// clock that begins with a new snapshot has to take its place.
    mutating func hear(_ server: Timestamp, at local: Instant) -> Bool {
        let told = Reading(server: server, local: local)
        newest = told
        guard server < time(at: local) else {
            (base, lower) = (told, nil)
            return false
        }
        let (first, highest) = lower ?? (told, told)
        lower = (first, server > highest.predicted(at: local) ? told : highest)
        guard first.passed(until: local) >= Self.correctionTime else { return false }
        return !isCorrected(first, told)
    }

    /// Follows a server whose time went on meanwhile, and lower than ours. The time of a node that is cut off stands
    /// still; a server that lowers its own time lets it run at half speed. Returns false if the correction is too
    /// large.
    private mutating func isCorrected(_ first: Reading, _ last: Reading) -> Bool {
        defer { lower = nil }
        guard let highest = lower?.highest, (last.server - first.server) * 4 >= first.passed(until: last.local) else {
            return true
        }
        guard time(at: last.local) - highest.predicted(at: last.local) <= Self.correctionMax else { return false }
        base = highest
        return true
    }
}
