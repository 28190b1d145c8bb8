public import Base
public import Messages

/// Decides which refusals are written one by one and which are only counted: a flood of refusals must not become a
/// flood of writes. Pure.
public struct DenialRate: Sendable {
    public enum Verdict: Equatable, Sendable {
        case record
        /// `isFirst`: nothing was counted before; a flush is due in a second.
        case counted(isFirst: Bool)
    }

    private struct Kind: Hashable {
        let toggle: Toggle
        let operation: Text
    }

    private let recordedPerSecondMax: Int
    private var second: Int64 = 0
    private var recordedCount = 0
    private var suppressed: [Kind: Int64] = [:]

    public init(recordedPerSecondMax: Int) { self.recordedPerSecondMax = recordedPerSecondMax }

    public mutating func admit(_ denial: Denial, now: Timestamp) -> Verdict {
        if now.seconds != second {
            second = now.seconds
            recordedCount = 0
        }
        if recordedCount < recordedPerSecondMax {
            recordedCount += 1
            return .record
        }
        let isFirst = suppressed.isEmpty
        suppressed[Kind(toggle: denial.toggle, operation: denial.operation), default: 0] += 1
        return .counted(isFirst: isFirst)
    }

    /// One record for each toggle and operation that was counted since the last call.
    public mutating func takeSuppressed(now: Timestamp) -> [Denial] {
        defer { suppressed = [:] }
        return suppressed.map { kind, count in
            Denial(
                timeMicros: now.microseconds, toggle: kind.toggle, operation: kind.operation, suppressedCount: count)
        }
    }
}
