/// Limits the lines of one kind that a log gets in a second. Lines above the limit are counted, and the next line tells
/// the count.
public struct LineRate: Sendable {
    private let linesPerSecondMax: Int
    private var second: Int64 = 0
    private var writtenCount = 0
    private var suppressedCount: Int64 = 0

    public init(linesPerSecondMax: Int) { self.linesPerSecondMax = linesPerSecondMax }

    /// Nil: no line now. Otherwise the number of lines that were suppressed since the last one.
    public mutating func admit(now: Instant) -> Int64? {
        let current = now.nanoseconds / 1_000_000_000
        if current != second {
            second = current
            writtenCount = 0
        }
        guard writtenCount < linesPerSecondMax else {
            suppressedCount += 1
            return nil
        }
        writtenCount += 1
        defer { suppressedCount = 0 }
        return suppressedCount
    }
}
