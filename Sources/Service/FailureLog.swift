import Base
import Synchronization

/// One log line per failed call, and not more than a hundred a second: the rest is counted.
final class FailureLog: Sendable {
    private struct Window {
        var second: Int64 = 0
        var writtenCount = 0
        var suppressedCount: Int64 = 0
    }

    private let log: Log
    private let window = Mutex(Window())
    private static let linesPerSecondMax = 100

    init(log: Log) { self.log = log }

    func write(
        _ method: MethodDescriptor, _ failure: Failure, _ error: any Error, requestID: Text, start: Instant,
        now: Instant
    ) {
        let (mayWrite, suppressedCount) = window.withLock { window -> (Bool, Int64) in
            let second = now.nanoseconds / 1_000_000_000
            if second != window.second {
                window.second = second
                window.writtenCount = 0
            }
            guard window.writtenCount < Self.linesPerSecondMax else {
                window.suppressedCount += 1
                return (false, 0)
            }
            window.writtenCount += 1
            defer { window.suppressedCount = 0 }
            return (true, window.suppressedCount)
        }
        guard mayWrite else { return }
        if suppressedCount > 0 { log.info("calls failed without a line", ["count": .integer(suppressedCount)]) }
        let microseconds = now.nanoseconds(since: start) / 1_000
        if failure.code == .internal || failure.code == .dataLoss {
            log.error(
                "call failed",
                [
                    "method": .text(method.fullName), "status": .text(failure.code.name),
                    "reason": .text(failure.reason), "error": .text("\(error)"), "request_id": .text(requestID.string),
                    "duration_micros": .integer(microseconds),
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
