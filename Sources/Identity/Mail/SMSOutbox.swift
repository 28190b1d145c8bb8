import Base
import Messages
import Rules

/// Makes the SMS of the outbox, as the settings of their tenant say. Any thread.
struct SMSOutbox: Sendable {
    let seal: OutboxSeal
    let configs: SMSConfigs

    /// How long an SMS stays in the outbox. Its code is good for minutes; the rest of the time is for a person who
    /// looks into a failure.
    static let messageKept = Duration.hours(24)

    /// The message that brings `code` to `number`, to be written together with the code's record.
    ///
    /// `isDecoy`: the message is written, queued and finished like any other, but nothing is sent.
    func message(
        _ purpose: VerificationPurpose, code: [UInt8], to number: PhoneNumber, locale: Text, appName: Text,
        goodUntil: Timestamp, tenantID: Text, isDecoy: Bool, now: Timestamp
    ) throws -> StoredOutboxMessage {
        let config = try configs.get(tenantID: tenantID)
        let text = SMSText.text(purpose, code: code, appName: appName, templates: config.templates, locale: locale)
        let messageID = seal.messageID(at: now)
        let contents = OutboxContents(text: text, code: Text(unchecked: code))
        let isDelivered = config.delivery == .webhook
        let message = OutboxMessage(
            messageID: messageID, to: number.text, state: isDelivered ? .pending : .held,
            createdAtMicros: now.microseconds, nextAttemptAtMicros: isDelivered ? now.microseconds : 0,
            expiresAtMicros: (now + Self.messageKept).microseconds, verificationPurpose: purpose)
        return StoredOutboxMessage(
            message: message, sealedContents: try seal.seal(contents, tenantID: tenantID, messageID: messageID),
            decoy: isDecoy, deliverUntilMicros: goodUntil.microseconds)
    }
}

/// One attempt to deliver one SMS. Any thread.
struct SMSAttempt: Sendable {
    let configs: SMSConfigs
    let webhook: WebhookPost

    func deliver(
        _ message: OutboxMessage, _ contents: OutboxContents, tenantID: Text
    ) async -> DeliveryOutcome {
        let stored: StoredSmsConfig
        do {
            stored = try configs.stored(tenantID: tenantID)
        } catch {
            return .settings("the SMS settings cannot be read", error)
        }
        guard let config = stored.config, config.delivery == .webhook, let target = config.webhook else { return .held }
        return await webhook.send(
            Webhook.body(sms: message, contents, tenantID: tenantID), to: target,
            secret: configs.signingSecret(stored, tenantID: tenantID),
            allowsPrivateAddresses: config.allowPrivateAddresses, tenantID: tenantID)
    }
}
