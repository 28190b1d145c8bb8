import Base
import Store

/// Decides which changes of the store's trouble get a line in the log. Pure: the time is passed in.
///
/// Near a full disk a store may come into trouble and out of it with every other write. A change soon after the last
/// line is counted; the next line tells the count and the present state. While changes go on, lines come less and less
/// often.
struct TroubleLog {
    struct Line: Equatable {
        /// Nil: the store takes all writes again.
        let trouble: StoreTrouble?
        /// The changes since the line before that have no line of their own.
        let suppressedCount: Int64
    }

    static let quietMin = Duration.seconds(10)
    static let quietMax = Duration.minutes(10)

    private var trouble: StoreTrouble?
    private var suppressedCount: Int64 = 0
    private var quiet = quietMin
    private var quietUntil: Instant?

    /// The store came into this trouble, or out of trouble.
    mutating func changed(to trouble: StoreTrouble?, now: Instant) -> Line? {
        self.trouble = trouble
        if let quietUntil, now < quietUntil {
            suppressedCount += 1
            return nil
        }
        return line(now: now)
    }

    /// The line for changes that had to wait for it. Call this now and then.
    mutating func due(now: Instant) -> Line? {
        guard suppressedCount > 0, let quietUntil, now >= quietUntil else { return nil }
        return line(now: now)
    }

    private mutating func line(now: Instant) -> Line {
        defer { suppressedCount = 0 }
        quiet = suppressedCount > 0 ? min(quiet * 2, Self.quietMax) : Self.quietMin
        quietUntil = now.advanced(by: quiet)
        return Line(trouble: trouble, suppressedCount: suppressedCount)
    }
}
