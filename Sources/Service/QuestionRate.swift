import Base

/// A limit on the number of questions in each second.
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
