public import Base
public import Messages
import Outbound
import Reactor
public import Rules
import Store

/// Sends a mail that only tests whether a tenant's mail goes out: one attempt, at once, without the outbox. Any thread.
public struct TestMail: Sendable {
    private let resources: Resources
    private let configs: EmailConfigs
    private let delivery: MailDelivery
    private let tenants: TenantDirectory
    private let seal: OutboxSeal

    init(
        resources: Resources, configs: EmailConfigs, delivery: MailDelivery, tenants: TenantDirectory, seal: OutboxSeal
    ) {
        (self.resources, self.configs, self.delivery) = (resources, configs, delivery)
        (self.tenants, self.seal) = (tenants, seal)
    }

    /// Sends a test mail. Its words are fixed, so that nobody can send words of their own with it. The event is written
    /// before the mail goes out. TOO_MANY_ATTEMPTS_TRY_LATER.
    public func send(
        to recipient: Email, settings: TenantSettings, origin: Origin, deadline: Instant
    ) async throws -> EmailConfigsTestResponse {
        let tenantID = settings.tenantID
        let kind = try configs.get(tenantID: tenantID).delivery
        try await tenants.tenant(tenantID).admitTestMail(to: recipient, settings: settings)
        let now = resources.clock.now()
        try await resources.store.write { transaction in
            _ = try transaction.reading.liveTenant(tenantID)
            try transaction.appendEvent(
                .emailConfigTested, tenantID: tenantID, origin: origin, detail: Text("\(kind)"), now: now)
        }
        let start = Instant.now
        let message = OutboxMessage(
            messageID: seal.messageID(at: now), to: recipient.address, createdAtMicros: now.microseconds)
        let outcome = await delivery.deliver(
            message, Self.contents(settings), tenantID: tenantID, deadline: deadline)
        return EmailConfigsTestResponse(
            ok: outcome == .sent, message: outcome.words, delivery: kind,
            durationNanos: Instant.now.nanoseconds(since: start))
    }

    private static func contents(_ settings: TenantSettings) -> OutboxContents {
        let pool = settings.tenantID.isEmpty ? "the default tenant" : "the tenant \(settings.tenantID)"
        let sentence = "An administrator asked for this mail, to see whether mail of \(pool) arrives. "
        let text = Text("\(sentence)There is nothing to do.\n")
        return OutboxContents(
            subject: "Test of mail delivery", text: text, html: Text("<p>\(sentence)There is nothing to do.</p>\n"))
    }
}

extension DeliveryOutcome {
    fileprivate var words: Text {
        switch self {
        case .sent: "the mail was taken"
        case .failed(let reason), .unanswered(let reason), .refused(let reason), .postponed(let reason): reason
        case .held: "nothing was sent: this tenant's mail stays in the outbox"
        }
    }
}
