public import Base
public import Messages
public import Rules
public import Store
import Synchronization

/// The use of the quotas of credentials and tenants. A call asks it before any work, and afterwards charges its writes.
///
/// Rates live in memory: in a cluster each node keeps its own, so that n nodes together admit up to n times as much.
/// Stored bytes are read from the store, where they are exact. Any thread.
public final class QuotaLedger: Sendable {
    /// The account of one credential, or of the admins of one tenant together. It is meaningful until both buckets are
    /// full again.
    private struct CallerAccount: Fading {
        var mutations: TokenBucket
        var bytes: TokenBucket
        var meaningfulUntil: Timestamp
    }

    /// The account of one tenant. The refusals in it are for `usage` only.
    private struct TenantAccount: Fading {
        var mutations: TokenBucket
        var refused = [Int64](repeating: 0, count: Quota.allCases.count)
        var meaningfulUntil: Timestamp
    }

    private struct State {
        var callers = ForgetfulTable<Text, CallerAccount>(countMax: QuotaLedger.accountsMax)
        var tenants = ForgetfulTable<Text, TenantAccount>(countMax: QuotaLedger.accountsMax)
    }

    private let state = Mutex(State())
    private let clock: Clock
    private let serverClock: Clock
    let limits: QuotaLimits
    /// Streams that wrote something for which their handler did not have them charged at once: a fault of the handler.
    public let streamsChargedLate = Counter()
    private let refusals = Quota.allCases.map { _ in Counter() }
    private static let accountsMax = 20_000

    init(resources: Resources) {
        self.clock = resources.steadyClock
        self.serverClock = resources.clock
        self.limits = resources.quotaLimits
    }

    /// How often each quota refused, since the start.
    public var refusalCounts: [(quota: Quota, count: UInt64)] {
        Quota.allCases.map { ($0, refusals[$0.index].value) }
    }

    /// QUOTA_EXCEEDED for a change that the caller or the tenant may not make now.
    ///
    /// Changes for `relief` and `removal` have reserves, so that growth keeps nobody from revoking: as much again of
    /// the caller's rates, and an eighth of the tenant's bytes. What removes rows needs no bytes and is asked for none;
    /// neither is a project-admin who revokes, because nobody else can once a tenant's own admins have spent the
    /// reserve.
    public func admit(
        _ caller: Caller, settings: TenantSettings, isAboutTenant: Bool, for purpose: WritePurpose,
        in transaction: borrowing ReadTransaction
    ) throws {
        let hasReserve = purpose >= .relief
        if isAboutTenant, purpose < (caller.has(.projectAdmin) ? .relief : .removal) {
            let limit = limits.storedBytes(settings, withReserve: hasReserve)
            let used = try transaction.usage(ofTenant: settings.tenantID).byteCount
            if used >= limit { throw refuse(.tenantStoredBytes, settings, limit: limit, used: used, wait: nil) }
        }
        guard Self.hasRates(caller, settings) else { return }
        let now = clock.now()
        let refusal = state.withLock { state -> Refusal? in
            for rates in self.rates(of: caller) {
                let account = account(rates, in: &state, now: now)
                if let refusal = self.refusal(rates, account, for: purpose) { return refusal }
            }
            guard !hasReserve, !caller.has(.tenantAdmin) else { return nil }
            let rate = limits.mutationsPerSecond(settings)
            let bucket = tenantAccount(of: settings, in: &state, now: now).mutations
            return Refusal(.tenantMutations, bucket, size: rate * QuotaLimits.burstSeconds, perSecond: Double(rate))
        }
        if let refusal {
            throw refuse(
                refusal.quota, settings, limit: refusal.limit, used: refusal.used, wait: refusal.wait)
        }
    }

    /// Charges what an admitted change wrote; a change that wrote nothing costs nothing.
    public func charge(_ caller: Caller, settings: TenantSettings, _ written: WriteMeter) {
        guard written.changeCount > 0, Self.hasRates(caller, settings) else { return }
        let now = clock.now()
        state.withLock { state in
            for rates in self.rates(of: caller) {
                var account = account(rates, in: &state, now: now)
                let (rate, hourly) = (rates.mutationsPerSecond, Double(rates.bytesPerHour))
                // Debts go deeper than the reserve, or each moment of refilling would admit another call at its end.
                account.mutations.spend(1, size: 2 * burst(rate))
                account.bytes.spend(Double(max(0, written.byteCount)), size: 2 * hourly)
                account.meaningfulUntil = max(
                    account.mutations.fullAgain(perSecond: Double(rate), size: burst(rate)),
                    account.bytes.fullAgain(perSecond: hourly / 3_600, size: hourly))
                state.callers[rates.key] = account
            }
            guard !caller.has(.tenantAdmin) else { return }
            var tenant = tenantAccount(of: settings, in: &state, now: now)
            let tenantRate = limits.mutationsPerSecond(settings)
            tenant.mutations.spend(1, size: burst(tenantRate))
            tenant.meaningfulUntil = tenant.mutations.fullAgain(perSecond: Double(tenantRate), size: burst(tenantRate))
            state.tenants[settings.tenantID] = tenant
        }
    }

    /// Counts a refusal of one of the tenant's quotas, and makes its failure.
    func refuse(
        _ quota: Quota, _ settings: TenantSettings, limit: Int64, used: Int64, wait: Duration?
    ) -> Failure {
        refusals[quota.index].add()
        let now = clock.now()
        state.withLock { state in
            var account = tenantAccount(of: settings, in: &state, now: now)
            account.refused[quota.index] += 1
            state.tenants[settings.tenantID] = account
        }
        return .quotaExceeded(quota, limit: limit, used: used, retryAfter: wait)
    }

    /// The answer of Tenants.GetUsage. `hourly`: anonymous sign-ups of this hour.
    public func usage(
        of settings: TenantSettings, anonymousSignUps hourly: Int64, in transaction: borrowing ReadTransaction
    ) throws -> TenantsGetUsageResponse {
        let stored = try transaction.usage(ofTenant: settings.tenantID)
        let now = clock.now()
        let account = state.withLock { tenantAccount(of: settings, in: &$0, now: now) }
        let burst = limits.mutationsPerSecond(settings) * QuotaLimits.burstSeconds
        let sms = try transaction.spent(SMSBudgets.tenant(settings, limits: limits), now: serverClock.now())
        let quotas = Quota.allCases.map { quota in
            let (limit, used): (Int64, Int64) =
                switch quota {
                case .tenantStoredBytes: (limits.storedBytes(settings), max(0, stored.byteCount))
                case .tenantMutations: (burst, burst - Int64(account.mutations.level))
                case .tenantAnonymousSignUps: (limits.anonymousSignUpsPerHour(settings), hourly)
                case .addressAnonymousSignUps: (Int64(limits.limits.anonymousSignUpsPerAddressAndHour), 0)
                case .tenantSMS: (limits.smsPerHour(settings), sms)
                case .regionSMS: (Int64(limits.limits.smsPerRegionAndHour), 0)
                case .callerMutations, .callerWrittenBytes, .callerSMS: (0, 0)
                }
            return QuotaUse(
                quota: Text(quota.rawValue), limit: limit, used: used, refused: account.refused[quota.index])
        }
        // A damaged log hides the count and not the rest.
        let eventCount = (try? transaction.keptEventCount(tenantID: settings.tenantID)) ?? 0
        return TenantsGetUsageResponse(
            quotas: quotas, storedRows: max(0, stored.rowCount), storedEvents: eventCount)
    }
}

extension QuotaLedger {
    private struct Refusal {
        let quota: Quota
        let limit: Int64
        let used: Int64
        let wait: Duration

        /// Nil while there is something left above `floor`.
        init?(_ quota: Quota, _ bucket: TokenBucket, size: Int64, perSecond: Double, floor: Double = 0) {
            guard let wait = bucket.wait(until: floor, perSecond: perSecond) else { return nil }
            self.quota = quota
            self.limit = size
            self.used = size - Int64(bucket.level)
            self.wait = wait
        }
    }

    /// Whether rates apply. Project-admins have none, because they set the quotas. Tenants for load tests have none,
    /// because they are made to find out what the server can do.
    private static func hasRates(_ caller: Caller, _ settings: TenantSettings) -> Bool {
        !caller.has(.projectAdmin) && !settings.isSynthetic
    }

    /// The key of an account, and the rates that refill it.
    private struct Rates {
        let key: Text
        let mutationsPerSecond: Int64
        let bytesPerHour: Int64
    }

    /// The caller's own account, that of the owner of its quota (docs/decisions/0098), and that of the admins of its
    /// tenant (docs/decisions/0107).
    private func rates(of caller: Caller) -> [Rates] {
        let own = rates(of: caller.quotaHolder)
        return switch (caller.quotaOwner.map { rates(of: $0) }, sharedRates(of: caller, own)) {
        case (nil, nil): [own]
        case (nil, let shared?): [own, shared]
        case (let owner?, nil): [own, owner]
        case (let owner?, let shared?): [own, owner, shared]
        }
    }

    private func rates(of holder: QuotaHolder) -> Rates {
        Rates(
            key: holder.id, mutationsPerSecond: limits.mutationsPerSecond(holder),
            bytesPerHour: limits.writtenBytesPerHour(holder))
    }

    private func sharedRates(of caller: Caller, _ own: Rates) -> Rates? {
        guard caller.has(.tenantAdmin), let tenantID = caller.tenantID else { return nil }
        // The id of a credential never has a blank.
        return Rates(
            key: Text(unchecked: [UInt8]("admins of ".utf8) + tenantID.bytes),
            mutationsPerSecond: max(own.mutationsPerSecond, Int64(limits.limits.mutationsPerAdminPerSecond)),
            bytesPerHour: max(own.bytesPerHour, Int64(limits.limits.writtenBytesPerAdminAndHour)))
    }

    private func refusal(_ rates: Rates, _ account: CallerAccount, for purpose: WritePurpose) -> Refusal? {
        let rate = rates.mutationsPerSecond
        let (burst, hourly) = (rate * QuotaLimits.burstSeconds, rates.bytesPerHour)
        let hasReserve = purpose >= .relief
        if let refusal = Refusal(
            .callerMutations, account.mutations, size: burst, perSecond: Double(rate),
            floor: hasReserve ? -Double(burst) : 0)
        {
            return refusal
        }
        if purpose == .removal { return nil }
        return Refusal(
            .callerWrittenBytes, account.bytes, size: hourly, perSecond: Double(hourly) / 3_600,
            floor: hasReserve ? -Double(hourly) : 0)
    }

    /// The size of the bucket that `rate` per second refills.
    private func burst(_ rate: Int64) -> Double { Double(rate * QuotaLimits.burstSeconds) }

    private func account(_ rates: Rates, in state: inout State, now: Timestamp) -> CallerAccount {
        let (rate, hourly) = (rates.mutationsPerSecond, Double(rates.bytesPerHour))
        var account =
            state.callers[rates.key]
            ?? CallerAccount(
                mutations: TokenBucket(size: burst(rate), now: now), bytes: TokenBucket(size: hourly, now: now),
                meaningfulUntil: now)
        account.mutations.refill(perSecond: Double(rate), size: burst(rate), now: now)
        account.bytes.refill(perSecond: hourly / 3_600, size: hourly, now: now)
        state.callers[rates.key] = account
        return account
    }

    private func tenantAccount(of settings: TenantSettings, in state: inout State, now: Timestamp) -> TenantAccount {
        let rate = limits.mutationsPerSecond(settings)
        var account =
            state.tenants[settings.tenantID]
            ?? TenantAccount(mutations: TokenBucket(size: burst(rate), now: now), meaningfulUntil: now)
        account.mutations.refill(perSecond: Double(rate), size: burst(rate), now: now)
        state.tenants[settings.tenantID] = account
        return account
    }
}
