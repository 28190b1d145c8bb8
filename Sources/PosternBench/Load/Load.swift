import Base

/// A thread's share of a run: closed loop (`Driver`) or open loop (`OpenLoop`).
protocol Load: AnyObject, Sendable {
    /// By the operation's raw value.
    var outcomes: [Outcome] { get }
    var connectionsLost: Int { get }
    var sessions: [Session] { get }
    /// What an open loop could not do on time.
    var lag: Lag? { get }

    func run(_ schedule: Schedule, isInterrupted: () -> Bool) throws(BenchError)
}

/// What an open loop could not do on time.
struct Lag: Equatable, Sendable {
    /// Requests that were sent more than `OpenLoop.lateness` after they were due.
    var lateCount = 0
    /// Requests that were due and could not be sent, by reason.
    var unsent: [String: Int] = [:]

    var unsentCount: Int { unsent.values.reduce(0, +) }

    mutating func merge(_ other: Lag) {
        lateCount += other.lateCount
        unsent.merge(other.unsent) { $0 + $1 }
    }
}

extension Driver: Load {
    var lag: Lag? { nil }
}

extension OpenLoop: Load {
    var lag: Lag? { Lag(lateCount: lateCount, unsent: unsent) }

    func run(_ schedule: Schedule, isInterrupted: () -> Bool) throws(BenchError) {
        try run(
            from: .now, countFrom: schedule.countFrom, until: schedule.countUntil,
            drain: .nanoseconds(schedule.drainUntil.nanoseconds(since: schedule.countUntil)),
            isInterrupted: isInterrupted)
    }
}
