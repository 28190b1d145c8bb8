import Base
import Messages
import Store

// The rows that say when a message is to be delivered. A row is a hint, and the message decides. A row that its message
// does not point to is left over from a change in between, and delivering for it would send a mail twice.
// A damaged row is taken like any other, so that it leaves the queue and keeps no message behind it.

extension ReadTransaction {
    /// The most overdue messages of a tenant, up to `limit` and as many of each kind as there is room for. The SMS come
    /// first: their codes are good for minutes. `isTaken`: whether a message is being delivered already; it may read in
    /// the transaction.
    ///
    /// The messages of a suspended tenant stay in the queue as they are. Nothing is written for them, and they are due
    /// at once when the tenant is resumed. If this node cannot read whether the tenant is suspended, they stay, too.
    func dueMessages(
        of tenant: Text, now: Timestamp, limit: Int, room: DeliveryRoom, isTaken: (OutboxDueKey) -> Bool
    ) throws -> [OutboxDueKey] {
        let sms = try dueMessages(
            of: tenant, areSMS: true, now: now, limit: min(limit, room.sms), isTaken: isTaken)
        let mails = try dueMessages(
            of: tenant, areSMS: false, now: now, limit: min(limit - sms.count, room.mails), isTaken: isTaken)
        let due = sms + mails
        guard !due.isEmpty, mayDeliver(of: tenant) else { return [] }
        return due
    }

    /// False if the tenant is suspended, or if this node cannot read whether it is.
    func mayDeliver(of tenantID: Text) -> Bool { (try? isSuspended(tenantID)) == false }

    /// Whether a project-admin suspended the tenant. Reads the one field: each look at the queue asks this about each
    /// tenant with messages that are due.
    func isSuspended(_ tenantID: Text) throws -> Bool {
        let found = try withValue(Tables.tenants, TenantPrefix(tenantID)) { record -> Bool in
            guard let tenant = firstField(StoredTenant.FieldNumber.tenant, in: record) else { return false }
            return firstVarint(Messages.Tenant.FieldNumber.suspended, in: tenant) ?? 0 != 0
        }
        return found ?? false
    }

    private func dueMessages(
        of tenant: Text, areSMS: Bool, now: Timestamp, limit: Int, isTaken: (OutboxDueKey) -> Bool
    ) throws -> [OutboxDueKey] {
        var due: [OutboxDueKey] = []
        guard limit > 0 else { return due }
        let start: ScanStart = areSMS ? .at(OutboxDueKey.beforeSMS(of: tenant)) : .first
        try scanKeys(of: Tables.outboxDue, prefix: TenantPrefix(tenant), from: start) { key in
            guard key.isSMS == areSMS, key.time <= now else { return false }
            if !isTaken(key) { due.append(key) }
            return due.count < limit
        }
        return due
    }

    /// The first tenant after `last`, and not after `end`, that has a row in the queue.
    func tenantWithMail(after last: Text?, upTo end: Text?) throws -> Text? {
        var found: Text?
        try scanKeys(of: Tables.outboxDue, from: last.map { .behind(TenantPrefix($0)) } ?? .first) { key in
            found = key.tenant
            return false
        }
        if let end, let tenant = found, end.bytes.lexicographicallyPrecedes(tenant.bytes) { return nil }
        return found
    }

    /// The message a row is about; nil when the row is left over.
    func message(due key: OutboxDueKey) throws -> StoredOutboxMessage? {
        guard let stored = try get(Tables.outbox, TenantTextKey(key.tenant, key.messageID)),
            let message = stored.message, message.state == .pending,
            message.nextAttemptAtMicros == key.time.microseconds
        else { return nil }
        return stored
    }
}

extension WriteTransaction {
    /// Removes the row, and writes down the outcome of the attempt; nil = no attempt was made. If another change came
    /// in between, the outcome is written only when the mail was sent. Returns whether the message is given up.
    func settle(_ key: OutboxDueKey, _ outcome: DeliveryOutcome?, random: UInt64, now: Timestamp) throws -> Bool {
        try delete(Tables.outboxDue, key)
        guard let outcome else { return false }
        let isCurrent = try reading.message(due: key) != nil
        guard var stored = try get(Tables.outbox, TenantTextKey(key.tenant, key.messageID)),
            var message = stored.message, message.state == .pending, isCurrent || outcome == .sent
        else { return false }
        if case .unanswered = outcome { stored.unansweredAttempts &+= 1 }
        message.settle(
            outcome, unansweredCount: Int(stored.unansweredAttempts), isWorthDelivering: stored.isWorthDelivering,
            random: random, now: now)
        stored.message = message
        stored.claimant = []
        try putOutbox(stored, tenantID: key.tenant)
        return message.state == .dead
    }
}

extension OutboxMessage {
    var isSMS: Bool { verificationPurpose != .unspecified }

    /// The purpose of the mail or SMS, for events and the log.
    var kindName: String { isSMS ? "\(verificationPurpose)" : "\(requestType)" }

    /// Notes the outcome of an attempt. `unansweredCount`: how often a server got the whole message and did not answer,
    /// this attempt included.
    mutating func settle(
        _ outcome: DeliveryOutcome, unansweredCount: Int = 0, isWorthDelivering: (Timestamp) -> Bool = { _ in true },
        random: UInt64, now: Timestamp
    ) {
        if outcome.isAttempt { attempts &+= 1 }
        nextAttemptAtMicros = 0
        switch outcome {
        case .held:
            state = .held
            lastError = .empty
        case .sent:
            state = .sent
            sentAtMicros = now.microseconds
            lastError = .empty
        case .refused(let what):
            state = .dead
            lastError = what
        case .failed(let what):
            lastError = what
            guard Int(attempts) < Mailer.attemptsMax else { return state = .dead }
            plan(now + Mailer.backoff(afterAttempts: Int(attempts), isUrgent: isSMS, random: random), isWorthDelivering)
        case .unanswered(let what):
            lastError = what
            guard Int(attempts) < Mailer.attemptsMax, unansweredCount < Mailer.unansweredMax else {
                return state = .dead
            }
            plan(now + Mailer.pause(afterUnanswered: unansweredCount, random: random), isWorthDelivering)
        case .postponed(let what):
            lastError = what
            let age = now - Timestamp(microseconds: createdAtMicros)
            plan(now + Mailer.pause(atAge: age, isUrgent: isSMS, random: random), isWorthDelivering)
        }
    }

    private mutating func plan(_ next: Timestamp, _ isWorthDelivering: (Timestamp) -> Bool) {
        guard isWorthDelivering(next) else { return state = .dead }
        state = .pending
        nextAttemptAtMicros = next.microseconds
    }
}

extension StoredOutboxMessage {
    static let expiredCode: Text = "its code has expired"

    /// False once the code that the message carries has expired.
    func isWorthDelivering(at time: Timestamp) -> Bool {
        deliverUntilMicros == 0 || time < Timestamp(microseconds: deliverUntilMicros)
    }
}
