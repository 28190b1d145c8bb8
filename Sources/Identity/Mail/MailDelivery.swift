import Base
import Messages
import Outbound
import Reactor
import Rules
import Store

/// One attempt to deliver one message, as its tenant wants it delivered. Any thread.
struct MailDelivery: Sendable {
    let resources: Resources
    let configs: EmailConfigs
    let contents: OobDelivery
    let sms: SMSAttempt
    let smtp: SMTPClient
    let webhook: WebhookPost
    let counts = DeliveryCounts()

    /// Delivers the message of a row of the queue. Nil if the row was left over, or if its message is damaged: then
    /// nothing is delivered for the row, ever.
    func attempt(due key: OutboxDueKey) async -> DeliveryOutcome? {
        let found: (stored: StoredOutboxMessage?, mayDeliver: Bool)
        do {
            found = try resources.store.read {
                (stored: try $0.message(due: key), mayDeliver: $0.mayDeliver(of: key.tenant))
            }
        } catch {
            guard case StoreError.corrupt = error else { return .unreadable }
            resources.log.error(
                "a mail cannot be read",
                ["tenant": .text(key.tenant.string), "message_id": .text(key.messageID.string)])
            return nil
        }
        guard let stored = found.stored else { return nil }
        if !found.mayDeliver { return .suspended }
        // A decoy is not sent: only its delivery is written.
        return stored.decoy ? .sent : await attempt(stored, tenantID: key.tenant)
    }

    func attempt(_ stored: StoredOutboxMessage, tenantID: Text) async -> DeliveryOutcome {
        guard let message = stored.message else { return .refused("the record is damaged") }
        guard stored.isWorthDelivering(at: resources.clock.now()) else {
            return .refused(StoredOutboxMessage.expiredCode)
        }
        guard let contents = try? self.contents.contents(of: stored, tenantID: tenantID) else {
            return .refused("the message cannot be read")
        }
        let outcome: DeliveryOutcome =
            if message.isSMS {
                await sms.deliver(message, contents, tenantID: tenantID)
            } else {
                await deliver(
                    message, contents, tenantID: tenantID, deadline: Instant.now.advanced(by: .seconds(60)))
            }
        counts.count(outcome, of: message.isSMS ? .sms : .mail)
        return outcome
    }

    /// Delivers a mail that need not be in the outbox.
    func deliver(
        _ message: OutboxMessage, _ contents: OutboxContents, tenantID: Text, deadline: Instant
    ) async -> DeliveryOutcome {
        let config: StoredEmailConfig
        do {
            config = try configs.stored(tenantID: tenantID)
        } catch {
            return .settings("the mail settings cannot be read", error)
        }
        switch config.config?.delivery {
        case .smtp: return await bySMTP(message, contents, config, tenantID, deadline: deadline)
        case .webhook: return await byWebhook(message, contents, config, tenantID)
        default: return .held
        }
    }

    private func bySMTP(
        _ message: OutboxMessage, _ contents: OutboxContents, _ stored: StoredEmailConfig, _ tenantID: Text,
        deadline: Instant
    ) async -> DeliveryOutcome {
        guard let config = stored.config, let smtp = config.smtp, let port = UInt16(exactly: smtp.port) else {
            return .failed("no mail server is configured")
        }
        // An earlier server took such a host.
        guard smtp.mayHaveItsSecurity else { return .failed(SmtpConfig.clearTextAdvice) }
        let mail = MailMessage(
            messageID: message.messageID, senderName: config.senderName, senderAddress: config.senderAddress,
            replyTo: config.replyTo, recipient: message.to, contents: contents,
            createdAt: Timestamp(microseconds: message.createdAtMicros))
        let server = SMTPServer(
            host: smtp.host, port: port, security: Self.security(of: smtp), username: smtp.username,
            password: configs.password(stored, tenantID: tenantID),
            policy: .ownServers(allowPrivateAddresses: config.allowPrivateAddresses))
        do {
            try await self.smtp.send(
                Secret(mail.bytes()), from: config.senderAddress, to: message.to, through: server, tenant: tenantID,
                deadline: deadline)
            return .sent
        } catch SMTPError.permanent(let code) {
            return .refused(Text("the mail server refused it with \(code)"))
        } catch SMTPError.noInternationalMail {
            return .refused("the mail server does not take international addresses (SMTPUTF8)")
        } catch SMTPError.unanswered {
            return .unanswered("the mail server got the mail and did not answer in time")
        } catch SMTPError.stopped {
            return .stopping
        } catch SMTPError.notAuthenticated {
            return .failed("the mail server does not take the user name and password")
        } catch SMTPError.transient(let code, .broken?) where (400...499).contains(code) {
            return .failed(Text("the mail server put it off with \(code)"))
        } catch SMTPError.transient(let code, let cause) {
            let what = (cause ?? .broken).explanation
            return .failed(Text("the mail server: \(what)\(code > 0 ? " (\(code))" : "")"))
        } catch {
            return .overloaded
        }
    }

    private static func security(of smtp: SmtpConfig) -> SMTPServer.Security {
        switch smtp.security {
        case .tls: .tls
        case .none: .none
        case .starttls, .unspecified: .startTLS
        }
    }

    private func byWebhook(
        _ message: OutboxMessage, _ contents: OutboxContents, _ stored: StoredEmailConfig, _ tenantID: Text
    ) async -> DeliveryOutcome {
        guard let config = stored.config, let target = config.webhook else {
            return .failed("no webhook is configured")
        }
        return await webhook.send(
            Webhook.body(message, contents, tenantID: tenantID), to: target,
            secret: configs.signingSecret(stored, tenantID: tenantID),
            allowsPrivateAddresses: config.allowPrivateAddresses, tenantID: tenantID)
    }
}
