public import Base
import Rules
import Synchronization
import Wire

/// Writes a line when a call ends: to the access log, and for a slow call to the server's log. Any thread.
///
/// A line costs the caller some microseconds and never waits: `LineSink` writes it, or drops it.
public final class CallLog: Sendable {
    public struct Configuration: Sendable {
        /// The access log; nil for none. The code that made it closes it.
        public var sink: LineSink?
        /// One call in `oneIn` gets a line, chosen by chance.
        public var oneIn = 1
        /// The duration from which on a unary call is slow; nil: no call is slow.
        public var slowFrom: Duration?

        public init() {}
    }

    /// Slow calls that get a line in a second; an overloaded server has many.
    private static let slowLinesPerSecondMax = 10

    let sink: LineSink?
    private let oneIn: UInt64
    private let slowNanoseconds: Int64
    private let log: Log
    private let clock: Clock
    private let callCount = Atomic<UInt64>(0)
    private let slowRate = Mutex(LineRate(linesPerSecondMax: slowLinesPerSecondMax))
    let slowCalls = Counter()

    init(_ configuration: Configuration, clock: Clock, log: Log) {
        self.sink = configuration.sink
        self.oneIn = UInt64(clamping: max(1, configuration.oneIn))
        self.slowNanoseconds =
            configuration.slowFrom.map { Instant(nanoseconds: 0).advanced(by: $0).nanoseconds } ?? .max
        self.log = log
        self.clock = clock
    }

    /// Whether a log may show where the time of a call went.
    var wantsTraces: Bool { sink != nil || slowNanoseconds < .max }

    /// A call ended after `nanoseconds`. `record` is called only if there is a line to write.
    @inline(__always)
    func ended(after nanoseconds: Int64, _ record: () -> CallRecord) {
        if sink == nil, nanoseconds < slowNanoseconds { return }
        write(record(), nanoseconds)
    }

    private func write(_ record: CallRecord, _ nanoseconds: Int64) {
        if let sink, isChosen() {
            var line = LogLine(time: clock.now(), level: "info", message: "call")
            record.append(to: &line, nanoseconds: nanoseconds)
            if oneIn > 1 { line.append("one_in", .integer(Int64(clamping: oneIn))) }
            sink.append(line.finish())
        }
        if record.isUnary, nanoseconds >= slowNanoseconds {
            slowCalls.add()
            guard let suppressedCount = slowRate.withLock({ $0.admit(now: .now) }) else { return }
            log.slowCall(record, nanoseconds: nanoseconds, suppressedCount: suppressedCount)
        }
    }

    /// Chooses by a hash of the call's number, so that a client that knows the rate cannot choose the calls without a
    /// line.
    private func isChosen() -> Bool {
        guard oneIn > 1 else { return true }
        var hasher = Hasher()
        hasher.combine(callCount.add(1, ordering: .relaxed).oldValue)
        return UInt64(truncatingIfNeeded: hasher.finalize()) % oneIn == 0
    }
}

extension Log {
    fileprivate func slowCall(_ record: CallRecord, nanoseconds: Int64, suppressedCount: Int64) {
        warning(
            "slow call",
            [
                "method": .text(record.method), "status": .text(record.statusName),
                "request_id": .text(String(decoding: record.requestID, as: UTF8.self)),
                "tenant": .text(record.tenantID?.string ?? ""), "caller": .text(record.caller?.id.string ?? ""),
                "duration_micros": .integer(nanoseconds / 1_000),
                "queue_micros": .integer((record.trace?.queued ?? 0) / 1_000),
                "work_micros": .integer((record.trace?.worked ?? 0) / 1_000),
                "commit_micros": .integer((record.trace?.committed ?? 0) / 1_000),
                "suppressed": .integer(suppressedCount),
            ])
    }
}
