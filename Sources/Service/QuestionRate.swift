import Base

/// Allows as many questions in a second as its limit says.
struct QuestionRate: Sendable {
    private let perSecond: Int
    private var second = Int64.min
    private var count = 0

    init(perSecond: Int) { self.perSecond = perSecond }

    mutating func take(now: Instant) -> Bool {
        let second = now.nanoseconds / 1_000_000_000
        if second != self.second { (self.second, count) = (second, 0) }
        guard count < perSecond else { return false }
        count += 1
        return true
    }
}
