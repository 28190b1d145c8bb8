public import Base
import Crypto
public import Messages
import Reactor
public import Rules
import Store
import Synchronization

/// The owner of one tenant: creates, changes and deletes it, and keeps its mail quotas and its refusals.
///
/// It holds no row, only counts. `TenantOwners` releases it once none of the counts matters any more (`isIdle`).
///
/// Runs on the event loop its id hashes to. Requests do not wait for it: they read the `TenantSettings` of the
/// `TenantDirectory`, which follow every change of the tenant's row before it is acknowledged.
public actor Tenant {
    public nonisolated let tenantID: Text
    nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    let resources: Resources
    private let quotas: QuotaLedger
    /// The time until which the counts of this hour and of this second matter, by the steady clock.
    private nonisolated let countsUntil = Atomic<Int64>(.min)
    /// Whether refusals were counted that are not written yet.
    private nonisolated let hasSuppressed = Atomic(false)
    private var mailBudgets = MailBudgets()
    private var anonymousSignUps = HourlyQuota()
    /// The key under which the tenant's sum is kept; an address hashes to it once in 2^64.
    private static let wholeTenant: UInt64 = 0
    private var denialRate: DenialRate
    /// Whether the rows of the deleted tenant are being removed.
    var isPurging = false

    init(_ tenantID: Text, quotas: QuotaLedger, resources: Resources, loop: EventLoop) {
        self.tenantID = tenantID
        self.quotas = quotas
        self.resources = resources
        self.loop = loop
        self.denialRate = DenialRate(recordedPerSecondMax: resources.limits.denialsRecordedPerSecond)
    }

    /// Whether nothing is lost when the owner is released: every hour that it counts in is over, and every refusal is
    /// written.
    nonisolated func isIdle(at now: Timestamp) -> Bool {
        !hasSuppressed.load(ordering: .acquiring) && countsUntil.load(ordering: .acquiring) <= now.microseconds
    }

    private func keepCounts(for duration: Duration, from now: Timestamp) {
        countsUntil.max((now + duration).microseconds, ordering: .acquiringAndReleasing)
    }

    // MARK: Quotas of mail

    /// Charges a mail to the budgets of its mailbox (`MailAsker`), and to the 30 an hour of an end user's address. A
    /// decoy is charged as a real mail is. TOO_MANY_ATTEMPTS_TRY_LATER.
    public func admitSend(
        email: Email, askedBy asker: MailAsker, address: EndUserAddress?, settings: TenantSettings
    ) throws {
        let (limits, key, mailbox) = (resources.limits, HMACKey(settings.secret), email.canonical.bytes)
        var charges: [MailBudgets.Charge]
        switch asker {
        case .anybody(let kind):
            charges = [.evenly(key.hash(kind, to: mailbox), perHour: limits.sendsPerMailboxAndHour)]
        case .owner: charges = [.evenly(key.hash([3] + mailbox), perHour: limits.sendsPerMailboxAndHour)]
        case .stranger(let uid):
            // No text holds a zero byte, so no two pairs of a uid and a mailbox make the same bytes.
            let own = key.hash([4] + uid.bytes + [0] + mailbox)
            // The last half is for accounts that have asked for none yet, so that two accounts cannot spend it all.
            let isFirst = mailBudgets.countOfHour(own, now: resources.steadyClock.now()) == 0
            let ofAll = limits.strangersSendsPerMailboxAndHour
            charges = [
                .hourly(own, max: limits.sendsPerMailboxAndHour),
                .hourly(key.hash([5] + mailbox), max: isFirst ? ofAll : ofAll / 2),
            ]
        }
        if let address {
            charges.append(.evenly(key.hash([0] + address.network), perHour: limits.sendsPerAddressAndHour))
        }
        try spend(charges)
    }

    private func spend(_ charges: [MailBudgets.Charge]) throws {
        let now = resources.steadyClock.now()
        if let wait = mailBudgets.spend(charges, now: now) { throw Failure.tooManyAttempts(retryAfter: wait) }
        keepCounts(for: .hours(1), from: now)
    }

    /// Charges a mail that tells a mailbox of a change: 5 an hour, apart from the mails that anybody may ask for.
    /// Otherwise anybody could keep a user from changing the email.
    public func admitNotice(to email: Email, settings: TenantSettings) throws {
        let key = HMACKey(settings.secret).hash([1] + email.canonical.bytes)
        try spend([.evenly(key, perHour: resources.limits.sendsPerMailboxAndHour)])
    }

    /// Charges a test mail: 10 an hour of the tenant, 5 to a mailbox.
    func admitTestMail(to email: Email, settings: TenantSettings) throws {
        let (limits, key) = (resources.limits, HMACKey(settings.secret))
        try spend([
            .evenly(
                key.hash(.unspecified, to: email.canonical.bytes), perHour: limits.sendsPerMailboxAndHour),
            .evenly(key.hash([2]), perHour: limits.testMailsPerTenantAndHour),
        ])
    }

    /// Charges an anonymous sign-up: it proves nothing, so one end user could make any number of accounts.
    /// QUOTA_EXCEEDED.
    public func admitAnonymousSignUp(address: EndUserAddress?, settings: TenantSettings) throws {
        let now = resources.steadyClock.now()
        let perTenant = Int(clamping: quotas.limits.anonymousSignUpsPerHour(settings))
        let perAddress = resources.limits.anonymousSignUpsPerAddressAndHour
        let key = address.map { HMACKey(settings.secret).hash([0] + $0.network) }
        let wait = anonymousSignUps.wait(Self.wholeTenant, max: perTenant, now: now)
        let addressWait = key.map { anonymousSignUps.wait($0, max: perAddress, now: now) } ?? .zero
        if wait > .zero || addressWait > .zero {
            let (quota, limit): (Quota, Int) =
                wait > .zero ? (.tenantAnonymousSignUps, perTenant) : (.addressAnonymousSignUps, perAddress)
            throw quotas.refuse(
                quota, settings, limit: Int64(limit), used: Int64(limit), wait: max(wait, addressWait))
        }
        keepCounts(for: .hours(1), from: now)
        anonymousSignUps.charge(Self.wholeTenant, now: now)
        if let key { anonymousSignUps.charge(key, now: now) }
    }

    /// Anonymous sign-ups of this hour.
    public func anonymousSignUpCount() -> Int64 {
        Int64(anonymousSignUps.count(Self.wholeTenant, now: resources.steadyClock.now()))
    }

    // MARK: Refusals

    /// Records a refusal durably, or only counts it when refusals come faster than `Limits.denialsRecordedPerSecond`.
    ///
    /// Never throws: the answer to the end user is the refusal, even if the record cannot be written.
    public func record(_ denial: Denial) async {
        let now = resources.steadyClock.now()
        keepCounts(for: .seconds(1), from: now)
        switch denialRate.admit(denial, now: now) {
        case .record: await write([denial])
        case .counted(let isFirst):
            hasSuppressed.store(true, ordering: .releasing)
            if isFirst { flushTimer.arm(after: .seconds(1)) }
        }
    }

    private lazy var flushTimer = Timer(on: loop) { [weak self] in
        self?.assumeIsolated { tenant in tenant.flushSuppressed() }
    }

    /// Writes the refusals that were only counted so far.
    func flushSuppressed() {
        flushTimer.cancel()
        let suppressed = denialRate.takeSuppressed(now: resources.clock.now())
        hasSuppressed.store(false, ordering: .releasing)
        // The task keeps this owner until they are written.
        Task(executorPreference: loop) { await self.write(suppressed) }
    }

    private func write(_ denials: [Denial]) async {
        let tenantID = tenantID
        let limits = resources.limits
        let mayDeleteByAge = resources.mayDeleteByAge
        do {
            try await resources.store.write(for: .session) { transaction in
                // Once the tenant's rows are purged, nothing would remove a new one again.
                guard try transaction.reading.isLiveTenant(tenantID) else { return }
                try transaction.appendDenials(
                    denials, tenantID: tenantID, limits: limits, deletesOldCounts: mayDeleteByAge)
            }
        } catch {
            resources.log.error(
                "a refusal was not recorded", ["tenant": .text(tenantID.string), "error": .text("\(error)")])
        }
    }
}

extension HMACKey {
    /// The key by which the counts of an address are found, instead of the address itself.
    fileprivate func hash(_ bytes: [UInt8]) -> UInt64 { tag(of: bytes).prefix(8).bigEndianNumber }

    /// The key of the mails of one kind to a mailbox.
    fileprivate func hash(_ kind: OobRequestType, to mailbox: [UInt8]) -> UInt64 {
        hash([6, UInt8(truncatingIfNeeded: kind.rawValue)] + mailbox)
    }
}
