import Base
import Synchronization

/// One log line per failed call, and not more than a hundred a second: the rest is counted. A line has the `cause` that
/// the failure's metadata tell, which is one of our own words for a reason with several causes.
final class FailureLog: Sendable {
    private let log: Log
    private let rate = Mutex(LineRate(linesPerSecondMax: 100))

    init(log: Log) { self.log = log }

    func write(
        _ method: MethodDescriptor, _ failure: Failure, _ error: any Error, requestID: Text, start: Instant,
        now: Instant
    ) {
        guard let suppressedCount = rate.withLock({ $0.admit(now: now) }) else { return }
        if suppressedCount > 0 { log.info("calls failed without a line", ["suppressed": .integer(suppressedCount)]) }
        let microseconds = now.nanoseconds(since: start) / 1_000
        if failure.code == .internal || failure.code == .dataLoss {
            log.error(
                "call failed",
                [
                    "method": .text(method.fullName), "status": .text(failure.code.name),
                    "reason": .text(failure.reason), "error": .text("\(error)"), "request_id": .text(requestID.string),
                    "duration_micros": .integer(microseconds),
                ])
        } else if let cause = failure.metadata.first(where: { $0.key == "cause" }) {
            log.info(
                "call failed",
                [
                    "method": .text(method.fullName), "status": .text(failure.code.name),
                    "reason": .text(failure.reason), "cause": .text(cause.value),
                    "request_id": .text(requestID.string), "duration_micros": .integer(microseconds),
                ])
        } else {
            log.info(
                "call failed",
                [
                    "method": .text(method.fullName), "status": .text(failure.code.name),
                    "reason": .text(failure.reason), "request_id": .text(requestID.string),
                    "duration_micros": .integer(microseconds),
                ])
        }
    }
}
