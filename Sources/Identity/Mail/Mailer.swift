public import Base
import Messages
import Outbound
import Reactor
import Store

/// Delivers the messages in the outbox, mail and SMS, by SMTP or webhook, at least once: a message is sent when the
/// server accepted it.
///
/// Runs on one loop; each delivery on the blocking pool, which shares its threads between the tenants. A tenant has few
/// deliveries under way, and fewer while many tenants have some, so that tenants whose servers hang do not hold up the
/// others (`DeliveryPlaces`). A tenant's SMS do not wait for its mails. A failed delivery is retried with back-off, and
/// given up after `attemptsMax` attempts. A message that could not be tried, because too much is on its way, waits for
/// a while and has lost no attempt. Everything about a delivery is in the store, so a stop loses nothing. In a cluster
/// each message is claimed before it is sent (`MailClaim`).
public actor Mailer {
    nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let resources: Resources
    let delivery: MailDelivery
    /// The places of the messages on their way.
    private var places = DeliveryPlaces()
    /// Attempts whose outcome could not be written yet; each keeps its place, so that it is not made again meanwhile.
    private var unsettled: [(key: OutboxDueKey, outcome: DeliveryOutcome?)] = []
    private var lastTenant: Text?
    /// The look at the tenants that is under way, or waits until a place is free.
    private var round: DueRound?
    /// Whether messages may have become due that the round has passed already.
    private var wantsAnotherRound = false
    private var isStepPlanned = false
    private var idleWaiters: [Promise<Void>] = []
    private var othersClaims = ClaimWatch()
    private var isStopped = false
    private var isWakingSoon = false
    /// Messages that were taken over from another node of the cluster, which did not write their outcome.
    public nonisolated let takenOverCount = Counter()
    /// The name of this node in the claims of the cluster's nodes.
    private let claimant: [UInt8]
    /// How often `wakeSoon` was called after a message was written.
    nonisolated let wakeCount = Counter()

    /// The tenants that are looked at in one turn of the loop.
    static let tenantsPerStep = 250
    /// How often a tenant was looked at for messages that are due.
    nonisolated let looks = Counter()

    init(
        resources: Resources, configs: EmailConfigs, contents: OobDelivery, smsConfigs: SMSConfigs, smtp: SMTPClient,
        http: HTTPClient, loop: EventLoop
    ) {
        self.resources = resources
        let webhook = WebhookPost(resources: resources, http: http)
        self.delivery = MailDelivery(
            resources: resources, configs: configs, contents: contents,
            sms: SMSAttempt(configs: smsConfigs, webhook: webhook), smtp: smtp, webhook: webhook)
        self.loop = loop
        self.claimant = resources.random.bytes(16)
    }

    // MARK: Running

    private lazy var timer = Timer(on: loop) { [weak self] in
        self?.assumeIsolated { $0.wake() }
    }

    /// Looks for due messages once a second from here on.
    public func start() { wake() }

    public func stop() {
        isStopped = true
        timer.cancel()
        tellIfIdle()
    }

    /// Starts delivering, some time later, because a message was written. No answer waits for the delivery: the
    /// duration of a request must not tell whether there is a mail to deliver.
    nonisolated func wakeSoon() {
        wakeCount.add()
        loop.run { [weak self] in self?.assumeIsolated { $0.armSoon() } }
    }

    /// Delivers due messages at once, for use from a call. The deliveries do not belong to the call: they must not
    /// count on its meter, end with its deadline, or use its share of a full disk.
    nonisolated func wakeNow() {
        loop.run { [weak self] in self?.assumeIsolated { $0.wake() } }
    }

    private func armSoon() {
        guard !isStopped, !isWakingSoon else { return }
        isWakingSoon = true
        let random = resources.random.bytes(8).bigEndianNumber
        timer.arm(after: .milliseconds(50 + Int64(random % 450)))
    }

    /// Starts to deliver due messages; returns at once.
    func wake() {
        isWakingSoon = false
        guard !isStopped else { return }
        timer.arm(after: .seconds(1))
        places.endRests()
        settleAgain()
        if resources.store.isInCluster {
            try? resources.store.read { transaction in
                othersClaims.forget { (try? transaction.exists(Tables.outboxDue, $0)) == false }
            }
        }
        lookAtAll()
    }

    /// Tries all messages that are due now; returns when no delivery is running any more.
    public func deliverDue() async {
        lookAtAll()
        guard !isIdle else { return }
        let idle = Promise<Void>()
        idleWaiters.append(idle)
        try? await idle.value()
    }

    private func lookAtAll() {
        if round == nil { round = DueRound(after: lastTenant) } else { wantsAnotherRound = true }
        goOn()
    }

    /// The next step of the round. Without a free place, the round waits for one.
    private func goOn() {
        guard !isStopped, !isStepPlanned, places.freeCount > 0, var round else { return }
        let due = try? resources.store.read { transaction in
            try round.next(
                limit: places.freeCount, tenantsMax: Self.tenantsPerStep, now: resources.clock.now(),
                in: transaction, room: { room(for: $0, beside: $1) }, isTaken: { isTaken($0, in: transaction) })
        }
        // Without an answer of the store, the next wake begins anew.
        self.round = due == nil || round.isOver ? nil : round
        begin(due ?? [])
        if self.round == nil, wantsAnotherRound {
            wantsAnotherRound = false
            if due != nil { self.round = DueRound(after: lastTenant) }
        }
        planStep()
    }

    /// Goes on with the round in a later turn, so that other work of the loop comes in between.
    private func planStep() {
        guard !isStopped, round != nil, places.freeCount > 0 else { return tellIfIdle() }
        isStepPlanned = true
        loop.run { [weak self] in self?.assumeIsolated { $0.stepCame() } }
    }

    private func stepCame() {
        isStepPlanned = false
        goOn()
    }

    /// Delivers more messages of a tenant, one of whose messages has left its place. The last round has seen the other
    /// tenants. If a round is under way and places are few, the tenants that it has not seen come first.
    private func deliverMore(of tenant: Text) {
        if places.isCrowded, round != nil { return goOn() }
        guard !isStopped, places.freeCount > 0 else { return }
        let due = try? resources.store.read { transaction in
            try transaction.dueMessages(
                of: tenant, now: resources.clock.now(), limit: places.freeCount, room: room(for: tenant),
                isTaken: { isTaken($0, in: transaction) })
        }
        begin(due ?? [])
    }

    private func begin(_ due: [OutboxDueKey]) {
        guard !due.isEmpty else { return }
        for key in due {
            places.take(key)
            lastTenant = key.tenant
        }
        if resources.store.isInCluster {
            Task(executorPreference: loop) { await self.claim(due) }
        } else {
            for key in due { Task(executorPreference: loop) { await self.deliver(key) } }
        }
    }

    /// Whether a message is being delivered, here or by another node whose claim is not over.
    private func isTaken(_ key: OutboxDueKey, in transaction: borrowing ReadTransaction) -> Bool {
        if places.has(key) { return true }
        guard resources.store.isInCluster else { return false }
        let (limits, now) = (resources.limits.journal, resources.steadyClock.now())
        if othersClaims.isLeft(key, for: limits.unreadableMailLeft, now: now) { return true }
        // A message that cannot be read counts as one that nobody claimed: this node notices when it claims it.
        guard let other = try? transaction.claimant(due: key), other != claimant else { return false }
        return !othersClaims.isOver(key, of: other, after: limits.mailClaim, now: now)
    }

    /// Leaves a message that this node cannot read to the other nodes for a while.
    private func leaveToOthers(_ key: OutboxDueKey) {
        guard othersClaims.noteUnreadable(key, now: resources.steadyClock.now()) else { return }
        resources.log.error(
            "a mail cannot be read here and is left to the other nodes; posternd --verify-store tells more",
            ["tenant": .text(key.tenant.string), "message_id": .text(key.messageID.string)])
    }

    /// How many more messages of the tenant may be on their way, beside those that get a place next.
    private func room(for tenant: Text, beside due: [OutboxDueKey] = []) -> DeliveryRoom {
        looks.add()
        return places.room(for: tenant, beside: due, now: .now)
    }

    /// Claims messages, and delivers those that no other node has claimed. After an outage the node that had a message
    /// comes first: it may have sent the message, and says so as soon as the engine answers.
    private func claim(_ due: [OutboxDueKey]) async {
        let limits = resources.limits.journal
        let (begin, until) = (resources.steadyClock.now(), resources.clock.now() + limits.mailClaim)
        let mayTakeOver = resources.store.hasReachedJournal(for: limits.mailClaimGrace)
        let wanted = due.map { DueMessage(key: $0, abandonedBy: mayTakeOver ? othersClaims.claimant(of: $0) : nil) }
        var claims: [ClaimOutcome]?
        do {
            claims = try await resources.store.write(for: .session) { [claimant] in
                try $0.claim(wanted, claimant, until: until)
            }
        } catch StoreError.corrupt where due.count > 1 {
            // A damaged record of one tenant does not keep the mail of others.
            for key in due { await claim([key]) }
            return
        } catch {}
        // A node that was held up does not use its claims: any node may deliver the messages when the claims are over.
        let isLate = resources.steadyClock.now() - begin > limits.mailClaimUse
        for (index, key) in due.enumerated() {
            let outcome = claims?[index]
            if case .unreadable? = outcome { leaveToOthers(key) }
            guard case .claimed(let claim)? = outcome, !isLate else {
                places.release(key)
                continue
            }
            if claim.isTakenOver { takenOverCount.add() }
            Task(executorPreference: loop) { await self.deliver(claim.key) }
        }
        goOn()
        tellIfIdle()
    }

    private func deliver(_ key: OutboxDueKey) async {
        let begun = Instant.now
        let outcome = await delivery.attempt(due: key)
        let now = Instant.now
        places.ended(key, outcome, after: .nanoseconds(now.nanoseconds(since: begun)), now: now)
        await settle(key, outcome)
    }

    // MARK: Outcomes

    private func settle(_ key: OutboxDueKey, _ outcome: DeliveryOutcome?) async {
        let now = resources.clock.now()
        let random = resources.random.bytes(8).bigEndianNumber
        do {
            let isGivenUp = try await resources.store.write(for: .removal) {
                try $0.settle(key, outcome, random: random, now: now)
            }
            if isGivenUp { counts.givenUp.add() }
        } catch {
            // The outcome is written with the next wake. A new delivery instead would send a mail a second as long as
            // the write fails.
            unsettled.append((key, outcome))
            return
        }
        places.release(key)
        deliverMore(of: key.tenant)
        tellIfIdle()
    }

    /// Whether nothing is on its way, and no tenant has to be looked at.
    private var isIdle: Bool { places.count == 0 && (round == nil || isStopped) }

    private func tellIfIdle() {
        guard isIdle else { return }
        for waiter in idleWaiters { waiter.succeed(()) }
        idleWaiters = []
    }

    private func settleAgain() {
        let again = unsettled
        unsettled = []
        for (key, outcome) in again { Task(executorPreference: loop) { await self.settle(key, outcome) } }
    }
}
