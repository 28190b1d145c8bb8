import Base
import Rules
import Synchronization

/// The processor time that each tenant may spend on one kind of work in `window`. Any thread.
///
/// Work that began while there was time left runs to its end, so a tenant exceeds `limit` by one piece of work at most.
final class ProcessorBudget: Sendable {
    private struct Account: Fading {
        var windowStart: Timestamp
        var nanoseconds: Int64

        var meaningfulUntil: Timestamp { windowStart + ProcessorBudget.window }
    }

    static let window = Duration.seconds(10)
    /// With more tenants at a time, a tenant takes the place of a tenant whose window ends soon.
    private static let accountsMax = 16_384

    let refused = Counter()
    private let limit: Int64
    private let accounts = Mutex(ForgetfulTable<Text, Account>(countMax: accountsMax))

    init(limit: Duration) {
        self.limit = limit.microseconds.multipliedReportingOverflow(by: 1_000).partialValue
    }

    var tenantCount: Int { accounts.withLock { $0.count } }

    /// OVERLOADED if the tenant has spent its time.
    func require(_ tenant: Text, now: Timestamp) throws(FederationError) {
        let spent = accounts.withLock { accounts in
            accounts[tenant].map { Self.isCurrent($0, now) ? $0.nanoseconds : 0 } ?? 0
        }
        guard spent < limit else {
            refused.add()
            throw .overloaded
        }
    }

    /// Does `work` on this thread, and charges its time to `tenant`.
    func spend<Value>(_ tenant: Text, now: Timestamp, _ work: () throws -> Value) rethrows -> Value {
        let start = OSThread.processorNanoseconds
        defer { charge(tenant, OSThread.processorNanoseconds - start, now) }
        return try work()
    }

    private func charge(_ tenant: Text, _ nanoseconds: Int64, _ now: Timestamp) {
        accounts.withLock { accounts in
            var account = accounts[tenant] ?? Account(windowStart: now, nanoseconds: 0)
            if !Self.mayCharge(account, now) { account = Account(windowStart: now, nanoseconds: 0) }
            account.nanoseconds += nanoseconds
            accounts[tenant] = account
        }
    }

    /// Whether the account's window is the present one. A window that begins in the future is not, because the clock
    /// went back since.
    private static func isCurrent(_ account: Account, _ now: Timestamp) -> Bool {
        account.windowStart <= now && now < account.windowStart + window
    }

    /// Whether work for a request of the time `now` is charged to this window: also if the window began after the
    /// request. Otherwise an answer that comes late would make the tenant's account forget what was spent meanwhile.
    private static func mayCharge(_ account: Account, _ now: Timestamp) -> Bool {
        account.windowStart < now + window && now < account.windowStart + window
    }
}
