public import Base
import Crypto
public import Messages
import Rules
public import Store

/// The budgets that an SMS is charged to. Each budget leaks evenly over its window: with five an hour, all five may
/// come at once, and then one every twelve minutes. Each tenant has budgets of its own, except for credentials.
///
/// | budget | limit | refusal |
/// |---|---|---|
/// | number, asked for from elsewhere | 5 an hour, 15 a day | TOO_MANY_ATTEMPTS_TRY_LATER |
/// | number, asked for from an address that its account knows | 5 an hour | TOO_MANY_ATTEMPTS_TRY_LATER |
/// | number, asked for from a device that its account knows | 5 an hour | TOO_MANY_ATTEMPTS_TRY_LATER |
/// | number as a second factor | the same, counted apart | TOO_MANY_ATTEMPTS_TRY_LATER |
/// | user or pending sign-in that the code is for | 10 an hour | TOO_MANY_ATTEMPTS_TRY_LATER |
/// | end user's address | 20 an hour | TOO_MANY_ATTEMPTS_TRY_LATER |
/// | region that the tenant does not name | 100 an hour | QUOTA_EXCEEDED |
/// | tenant | its quota, 1,000 an hour | QUOTA_EXCEEDED |
/// | credential, over all tenants; also the owner of its quota | its quota, 1,000 an hour | QUOTA_EXCEEDED |
///
/// The last four are shared by many users, and strangers can spend them. A sign-in that waits for its second factor may
/// overdraw each of them by as much again. Of such codes a user gets 5 an hour, and 5 more each from addresses and from
/// devices that its account knows; then TOO_MANY_ATTEMPTS_TRY_LATER.
///
/// The budgets are rows of the store, spent in the transaction that makes the code: an SMS costs money, so a restart or
/// a second node must not refill them. A refused SMS is not charged.
enum SMSBudgets {
    /// One budget, and the quota that refuses when it is spent.
    struct Charge: Sendable {
        let row: TenantHashKey
        let max: Int64
        let window: Duration
        /// Nil: attempts, not a quota.
        var quota: Quota?
        /// Whether the budget may be overdrawn by as much again.
        var mayBeOverdrawn = false
        /// Whether the charge is due only where another budget is overdrawn by the same message.
        var isForOverdrawing = false

        /// How long one unit takes to leak away.
        var cost: Int64 { Swift.max(1, window.microseconds / Swift.max(1, max)) }

        /// How much may be spent at once, as the time that it takes to leak away. Proof: a window is at most a day.
        var capacity: Int64 { mayBeOverdrawn ? 2 * window.microseconds : window.microseconds }
    }

    /// A quota that is spent; `QuotaLedger` makes its failure.
    struct Refusal: Error {
        let quota: Quota
        let limit: Int64
        let wait: Duration
    }

    /// Wrong codes of second factors, and enrolments, are bounded in the same way: see `FactorGuesses`.
    enum Name: UInt8 {
        case number = 1, numberByDay = 2, knownNumber = 3, subject = 4, address = 5, region = 6, tenant = 7, caller = 8
        case wrongTestCodes = 9, wrongFactorCodes = 10, wrongFactorCodesByDay = 11, enrollments = 12
        case factorNumber = 13, factorNumberByDay = 14, knownFactorNumber = 15, overdrawing = 16
    }

    /// The budget of wrong codes of a test number: its code never changes, and would be found in the end.
    static func wrongTestCodes(_ number: PhoneNumber, tenantID: Text) -> Charge {
        Charge(row: row(.wrongTestCodes, number.text.bytes, tenantID), max: 30, window: .hours(1))
    }

    /// The tenant's SMS of this hour.
    static func tenant(_ settings: TenantSettings, limits: QuotaLimits) -> Charge {
        Charge(row: row(.tenant, [], settings.tenantID), max: limits.smsPerHour(settings), window: .hours(1))
    }

    static func row(_ name: Name, _ value: [UInt8], _ tenantID: Text) -> TenantHashKey {
        TenantHashKey(tenantID, Digest.sha256([name.rawValue] + value))
    }
}

extension ReadTransaction {
    /// How much of a budget is spent, as the time that it takes to leak away.
    fileprivate func fill(_ charge: SMSBudgets.Charge, now: Timestamp) throws -> Int64 {
        try get(Tables.smsBudgets, charge.row)?.fill(now: now) ?? 0
    }

    /// Whether one more unit overdraws the budget.
    fileprivate func isOverdrawn(_ charge: SMSBudgets.Charge, now: Timestamp) throws -> Bool {
        guard charge.mayBeOverdrawn else { return false }
        return try fill(charge, now: now) + charge.cost > charge.window.microseconds
    }

    /// The charges that are due: those for overdrawing only if one of the others overdraws its budget.
    fileprivate func due(_ charges: [SMSBudgets.Charge], now: Timestamp) throws -> [SMSBudgets.Charge] {
        for charge in charges {
            if try isOverdrawn(charge, now: now) { return charges }
        }
        return charges.filter { !$0.isForOverdrawing }
    }

    /// How many units were spent and have not leaked away; a part of one counts as a whole.
    func spent(_ charge: SMSBudgets.Charge, now: Timestamp) throws -> Int64 {
        (try fill(charge, now: now) + charge.cost - 1) / charge.cost
    }
}

extension WriteTransaction {
    /// How long until one more unit fits; nil when it fits now.
    func wait(_ charge: SMSBudgets.Charge, now: Timestamp) throws -> Duration? {
        let excess = try reading.fill(charge, now: now) + charge.cost - charge.capacity
        return excess > 0 ? .microseconds(excess) : nil
    }

    /// Spends one unit of each budget, or nothing: TOO_MANY_ATTEMPTS_TRY_LATER, `SMSBudgets.Refusal`.
    func spend(_ charges: [SMSBudgets.Charge], now: Timestamp) throws {
        let charges = try reading.due(charges, now: now)
        for charge in charges {
            guard let wait = try wait(charge, now: now) else { continue }
            guard let quota = charge.quota else { throw Failure.tooManyAttempts(retryAfter: wait) }
            throw SMSBudgets.Refusal(quota: quota, limit: charge.max, wait: wait)
        }
        for charge in charges {
            let isNew = try !exists(Tables.smsBudgets, charge.row)
            let fill = try reading.fill(charge, now: now) + charge.cost
            try put(
                Tables.smsBudgets, charge.row, StoredSmsBudget(fillMicros: fill, atMicros: now.microseconds))
            if isNew { try scheduleExpiry(at: now + .microseconds(fill), Tables.smsBudgets, charge.row) }
        }
    }
}

extension QuotaLedger {
    /// Runs a body that spends budgets; a quota that refuses is counted, and answered with QUOTA_EXCEEDED.
    func refusing(_ settings: TenantSettings, _ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let refusal as SMSBudgets.Refusal {
            throw refuse(
                refusal.quota, settings, limit: refusal.limit, used: refusal.limit, wait: refusal.wait)
        }
    }
}

extension StoredSmsBudget: ExpiringRecord {
    /// How much is spent at `now`. After a small step back of the clock nothing leaks. A stored time further ahead came
    /// from a wrong clock, and nobody waits until then.
    fileprivate func fill(now: Timestamp) -> Int64 {
        let passed = (now - Timestamp(microseconds: atMicros)).microseconds
        if passed < -TimeKeeping.slack.microseconds { return 0 }
        return max(0, fillMicros.subtractingReportingOverflow(max(0, passed)).partialValue)
    }

    public static func expire(
        _ key: TenantHashKey, of table: Table<TenantHashKey, Self>, in transaction: borrowing WriteTransaction,
        now: Timestamp
    ) throws {
        guard let stored = try transaction.get(table, key) else { return }
        let fill = stored.fill(now: now)
        if fill == 0 {
            try transaction.delete(table, key)
        } else {
            try transaction.scheduleExpiry(at: now + .microseconds(fill), table, key)
        }
    }
}
