public import Base
public import Messages
public import Rules
public import Store

/// The messages that wait for delivery, and those that were delivered lately.
public struct Outbox: Sendable {
    let resources: Resources
    let oobDelivery: OobDelivery
    let mailer: Mailer

    /// Makes a code and queues its mail. `answer` is the answer to a repeat of the request.
    public func send(
        _ order: OobOrder, answer: AccountsSendOobCodeResponse, settings: TenantSettings, origin: Origin
    ) async throws {
        try await oobDelivery.send(order, answer: answer, settings: settings, origin: origin)
        mailer.wakeSoon()
    }

    /// The answer of the same request for a mail, if it was done before; nil otherwise. IDEMPOTENCY_KEY_REUSED.
    public func earlierAnswer(to origin: Origin) throws -> AccountsSendOobCodeResponse? {
        let answer: AccountsSendOobCodeResponse? = try resources.earlierAnswer(to: origin)
        // Earlier servers kept the answer without its email. Such a request is checked again; then `send` finds the
        // record, and sends nothing.
        return answer?.email.isEmpty == true ? nil : answer
    }

    /// Delivers a dead, waiting or held message at once. With `validateOnly` it only says how the message would be
    /// queued. OUTBOX_MESSAGE_NOT_FOUND, OUTBOX_MESSAGE_NOT_DELIVERABLE.
    public func retry(
        _ messageID: Text, tenantID: Text, validateOnly: Bool, origin: Origin
    ) async throws -> OutboxMessage {
        let now = resources.clock.now()
        let message = try await resources.store.write { transaction in
            try transaction.answeringRepeat(of: origin, validateOnly: validateOnly, now: now) {
                try transaction.retryOutboxMessage(messageID, tenantID: tenantID, validateOnly: validateOnly, now: now)
            }
        }
        if !validateOnly { mailer.wakeNow() }
        return message
    }

    /// Deletes a message. An event tells of a message that was still to be delivered: it may be the one by which a user
    /// learns of a change. OUTBOX_MESSAGE_NOT_FOUND.
    public func delete(_ messageID: Text, tenantID: Text, validateOnly: Bool, origin: Origin) async throws {
        let now = resources.clock.now()
        try await resources.store.write(for: .removal) { transaction in
            _ = try transaction.answeringRepeat(of: origin, validateOnly: validateOnly, now: now) {
                let stored = try transaction.reading.outboxMessage(messageID, tenantID: tenantID)
                if validateOnly { return OutboxDeleteResponse() }
                try transaction.forgetOutboxMessage(TenantTextKey(tenantID, messageID), stored)
                if let message = stored.message, message.state == .pending || message.state == .dead {
                    try transaction.appendEvent(
                        .outboxMessageDeleted, tenantID: tenantID, origin: origin,
                        detail: Text("\(message.kindName) \(messageID)"), now: now)
                }
                return OutboxDeleteResponse()
            }
        }
    }

    /// Writes down who read a message: its link is as good as a password.
    public func noteRead(_ messageID: Text, tenantID: Text, origin: Origin) async throws {
        let now = resources.clock.now()
        try await resources.store.write { transaction in
            try transaction.reading.requireLiveTenant(tenantID)
            try transaction.appendEvent(
                .outboxMessageRead, tenantID: tenantID, origin: origin, detail: messageID, now: now)
        }
    }
}

extension WriteTransaction {
    func putOutbox(_ stored: StoredOutboxMessage, tenantID: Text) throws {
        guard let message = stored.message else { return }
        let key = TenantTextKey(tenantID, message.messageID)
        try put(Tables.outbox, key, stored)
        try scheduleExpiry(at: Timestamp(microseconds: message.expiresAtMicros), Tables.outbox, key)
        if let due = message.dueKey(tenantID: tenantID) { try put(Tables.outboxDue, due, []) }
    }

    fileprivate func retryOutboxMessage(
        _ messageID: Text, tenantID: Text, validateOnly: Bool, now: Timestamp
    ) throws -> OutboxMessage {
        var stored = try reading.outboxMessage(messageID, tenantID: tenantID)
        guard var message = stored.message else { throw Failure.outboxMessageNotFound }
        try reading.checkDeliverable(stored, message, tenantID: tenantID, now: now)
        // A node of the cluster is delivering the message, or may have sent it and not said so. From another node it
        // might come twice, so it is taken over like any other: when the claim is over, and counted.
        if stored.isClaimed { return message }
        let formerDue = message.dueKey(tenantID: tenantID)
        message.state = .pending
        message.attempts = 0
        message.nextAttemptAtMicros = now.microseconds
        if validateOnly { return message }
        if let formerDue { try delete(Tables.outboxDue, formerDue) }
        stored.claimant = []
        stored.unansweredAttempts = 0
        stored.message = message
        try putOutbox(stored, tenantID: tenantID)
        return message
    }

    fileprivate func forgetOutboxMessage(_ row: TenantTextKey, _ stored: StoredOutboxMessage) throws {
        try delete(Tables.outbox, row)
        if let due = stored.message?.dueKey(tenantID: row.tenant) { try delete(Tables.outboxDue, due) }
    }
}

extension OutboxMessage {
    /// The message's row in the queue; nil if no attempt is planned.
    fileprivate func dueKey(tenantID: Text) -> OutboxDueKey? {
        guard nextAttemptAtMicros > 0 else { return nil }
        return OutboxDueKey(Timestamp(microseconds: nextAttemptAtMicros), tenantID, messageID, isSMS: isSMS)
    }
}

extension ReadTransaction {
    /// A message that exists; a decoy counts as missing. OUTBOX_MESSAGE_NOT_FOUND.
    public func outboxMessage(_ messageID: Text, tenantID: Text) throws -> StoredOutboxMessage {
        // An id longer than any of ours would not fit in a key.
        guard (1...64).contains(messageID.byteCount),
            let stored = try get(Tables.outbox, TenantTextKey(tenantID, messageID)), !stored.decoy
        else {
            throw Failure.outboxMessageNotFound
        }
        return stored
    }

    /// OUTBOX_MESSAGE_NOT_DELIVERABLE, with what is in the way.
    fileprivate func checkDeliverable(
        _ stored: StoredOutboxMessage, _ message: OutboxMessage, tenantID: Text, now: Timestamp
    ) throws {
        if message.state == .sent { throw Failure.notDeliverable("The message was sent already.") }
        guard stored.isWorthDelivering(at: now) else {
            throw Failure.notDeliverable("The message carries a code that has expired; let the user ask for a new one.")
        }
        guard message.state == .held else { return }
        let isDelivered =
            message.isSMS
            ? try smsConfig(tenantID: tenantID).delivery == .webhook
            : try emailConfig(tenantID: tenantID).delivery != .outbox
        if !isDelivered {
            throw Failure.notDeliverable(
                "The message is held to be read here: set how this tenant delivers \(message.isSMS ? "SMS" : "mail").")
        }
    }
}

extension Failure {
    fileprivate static let outboxMessageNotFound = Failure(
        .outboxMessageNotFound, "There is no such message in this tenant's outbox.")

    fileprivate static func notDeliverable(_ message: String) -> Failure {
        Failure(.outboxMessageNotDeliverable, message)
    }
}

extension StoredOutboxMessage: ExpiringRecord {
    public static func expire(
        _ key: TenantTextKey, of table: Table<TenantTextKey, Self>, in transaction: borrowing WriteTransaction,
        now _: Timestamp
    ) throws {
        guard let stored = try transaction.get(table, key) else { return }
        try transaction.forgetOutboxMessage(key, stored)
    }
}
