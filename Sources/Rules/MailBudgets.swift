public import Base

/// How many mails a mailbox gets, and how many an end user's address asks for, in an hour. Pure: the time is passed in.
///
/// A refused mail is not charged. Budgets are named by hashes; at most 50,000 of each sort are remembered.
public struct MailBudgets: Sendable {
    /// One mail of a budget.
    public enum Charge: Sendable {
        /// As many mails at once as the budget has for an hour; spent ones come back evenly. So whoever spends a budget
        /// that others share makes them wait for one mail's time, and not for the rest of an hour.
        case evenly(UInt64, perHour: Int)
        /// By hours, which begin with the budget's first mail.
        case hourly(UInt64, max: Int)
    }

    private var even = LeakyBuckets()
    private var hours = HourlyQuota()

    public init() {}

    /// Spends one mail of each budget, or nothing. Returns how long to wait until all of them have one; nil when the
    /// mails were spent.
    public mutating func spend(_ charges: [Charge], now: Timestamp) -> Duration? {
        if let wait = charges.map({ wait($0, now: now) }).max(), wait > .zero { return wait }
        for charge in charges {
            switch charge {
            case .evenly(let key, let perHour): even.charge(key, Self.rate(perHour), 1, now: now)
            case .hourly(let key, _): hours.charge(key, now: now)
            }
        }
        return nil
    }

    /// The mails that a budget which is counted by hours has spent of its present hour.
    public func countOfHour(_ key: UInt64, now: Timestamp) -> Int { hours.count(key, now: now) }

    private func wait(_ charge: Charge, now: Timestamp) -> Duration {
        switch charge {
        case .evenly(let key, let perHour): even.wait(key, Self.rate(perHour), now: now) ?? .zero
        case .hourly(let key, let max): hours.wait(key, max: max, now: now)
        }
    }

    private static func rate(_ perHour: Int) -> LeakyBuckets.Rate { .init(capacity: perHour, perHour: perHour) }
}
