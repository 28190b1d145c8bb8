public import Base
import Crypto
public import Messages
import Reactor
import Store

/// The owner of one tenant: its settings, its quotas of mail and its refusals.
///
/// Runs on the event loop its id hashes to. Requests do not wait for it: they read the `TenantSettings` it publishes
/// in the `TenantDirectory`, always before the change is acknowledged.
public actor Tenant {
    public nonisolated let tenantID: Text
    nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let resources: Resources
    // Unowned: the directory makes its tenants and lives as long as the process serves.
    private unowned let directory: TenantDirectory
    private var sends = HourlyQuota()
    private var anonymousSignUps = HourlyQuota()
    /// The key under which the tenant's sum is kept; an address hashes to it once in 2^64.
    private static let wholeTenant: UInt64 = 0
    private var denialRate: DenialRate
    private let hashKey: HMACKey

    init(settings: TenantSettings, directory: TenantDirectory, resources: Resources, loop: EventLoop) {
        self.tenantID = settings.tenantID
        self.directory = directory
        self.resources = resources
        self.loop = loop
        self.denialRate = DenialRate(recordedPerSecondMax: resources.limits.denialsRecordedPerSecond)
        self.hashKey = HMACKey(settings.secret)
    }

    // MARK: Settings

    /// Applies the masked settings; returns when they are durable and every new request sees them.
    public func update(
        _ change: TenantChange, validateOnly: Bool, origin: Origin
    ) async throws -> TenantSettings {
        let tenantID = tenantID
        let now = resources.clock.now()
        let limits = resources.limits
        let record = try await resources.store.write { transaction in
            var record = try transaction.reading.liveTenant(tenantID)
            var tenant = record.tenant ?? Messages.Tenant()
            let (wasShut, wasSuspended) = (tenant.isShut, tenant.suspended)
            let fields = try change.apply(to: &tenant, limits: limits)
            tenant.updatedAtMicros = max(now.microseconds, tenant.updatedAtMicros + 1)
            tenant.revision += 1
            record.tenant = tenant
            if validateOnly { return record }
            try transaction.put(Tables.tenants, TenantPrefix(tenantID), record)
            if tenant.isShut != wasShut {
                let kind: RevocationKind = tenant.isShut ? .tenantDisabled : .tenantEnabled
                try transaction.appendRevocation(kind, tenantID: tenantID, now: now)
            }
            try transaction.appendEvent(.tenantUpdated, tenantID: tenantID, origin: origin, detail: fields, now: now)
            if tenant.suspended != wasSuspended {
                try transaction.appendEvent(
                    tenant.suspended ? .tenantSuspended : .tenantResumed, tenantID: tenantID, origin: origin,
                    detail: tenant.suspensionReason, now: now)
            }
            return record
        }
        return validateOnly ? TenantSettings(record) : directory.publish(TenantSettings(record))
    }

    // MARK: Quotas of mail

    /// Charges a mail: 5 an hour to a mailbox, 30 an hour on behalf of an end user's address.
    public func admitSend(email: Email, address: EndUserAddress?) throws {
        let now = resources.steadyClock.now()
        let mailbox = hash(email.canonical.bytes)
        let network = address.map { hash([0] + $0.network) }
        let limits = resources.limits
        var wait = sends.wait(mailbox, max: limits.sendsPerMailboxAndHour, now: now)
        if let network { wait = max(wait, sends.wait(network, max: limits.sendsPerAddressAndHour, now: now)) }
        guard wait == .zero else { throw Failure.tooManyAttempts(retryAfter: wait) }
        sends.charge(mailbox, now: now)
        if let network { sends.charge(network, now: now) }
    }

    /// Charges a mail that tells a mailbox of a change: 5 an hour, apart from those anybody may ask for, who could
    /// keep a user from changing the email otherwise.
    public func admitNotice(to email: Email) throws {
        let now = resources.steadyClock.now()
        let key = hash([1] + email.canonical.bytes)
        let wait = sends.wait(key, max: resources.limits.sendsPerMailboxAndHour, now: now)
        guard wait == .zero else { throw Failure.tooManyAttempts(retryAfter: wait) }
        sends.charge(key, now: now)
    }

    /// Charges an anonymous sign-up: it proves nothing, so that one end user could make any number of accounts.
    /// QUOTA_EXCEEDED.
    public func admitAnonymousSignUp(address: EndUserAddress?, settings: TenantSettings) throws {
        let now = resources.steadyClock.now()
        let perTenant = Int(clamping: directory.quotas.limits.anonymousSignUpsPerHour(settings))
        let perAddress = resources.limits.anonymousSignUpsPerAddressAndHour
        let key = address.map { hash([0] + $0.network) }
        let wait = anonymousSignUps.wait(Self.wholeTenant, max: perTenant, now: now)
        let addressWait = key.map { anonymousSignUps.wait($0, max: perAddress, now: now) } ?? .zero
        if wait > .zero || addressWait > .zero {
            let (quota, limit): (Quota, Int) =
                wait > .zero ? (.tenantAnonymousSignUps, perTenant) : (.addressAnonymousSignUps, perAddress)
            throw directory.quotas.refuse(
                quota, settings, limit: Int64(limit), used: Int64(limit), wait: max(wait, addressWait))
        }
        anonymousSignUps.charge(Self.wholeTenant, now: now)
        if let key { anonymousSignUps.charge(key, now: now) }
    }

    /// Anonymous sign-ups of this hour.
    public func anonymousSignUpCount() -> Int64 {
        Int64(anonymousSignUps.count(Self.wholeTenant, now: resources.steadyClock.now()))
    }

    private func hash(_ bytes: [UInt8]) -> UInt64 {
        hashKey.tag(of: bytes).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    // MARK: Refusals

    /// Records a refusal durably, or counts it where they come faster than `Limits.denialsRecordedPerSecond`.
    ///
    /// Never throws: whatever becomes of the record, the answer to the end user stays the refusal.
    public func record(_ denial: Denial) async {
        switch denialRate.admit(denial, now: resources.steadyClock.now()) {
        case .record: await write([denial])
        case .counted(let isFirst): if isFirst { flushTimer.arm(after: .seconds(1)) }
        }
    }

    private lazy var flushTimer = Timer(on: loop) { [weak self] in
        self?.assumeIsolated { tenant in tenant.flushSuppressed() }
    }

    private func flushSuppressed() {
        let suppressed = denialRate.takeSuppressed(now: resources.clock.now())
        Task(executorPreference: loop) { await self.write(suppressed) }
    }

    private func write(_ denials: [Denial]) async {
        let tenantID = tenantID
        let limits = resources.limits
        do {
            try await resources.store.write(for: .session) { transaction in
                try transaction.appendDenials(denials, tenantID: tenantID, limits: limits)
            }
        } catch {
            resources.log.error(
                "a refusal was not recorded", ["tenant": .text(tenantID.string), "error": .text("\(error)")])
        }
    }
}

extension Messages.Tenant {
    /// Whether the tenant's tokens are refused, as verifiers were told.
    var isShut: Bool { disableAuth || suspended }
}
