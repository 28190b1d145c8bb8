import Base
import Messages
import PosternAdmin
import PosternClient
import Testing

/// The methods for the delivery of mail and SMS, and for what is on its way.
enum MailMethods {
    static func call(
        _ admin: TenantAdmin, _ scene: AdminScene, _ recorder: MethodRecorder
    ) async throws {
        // Nobody listens at this port, and time stands still: the mail keeps waiting for its next attempt.
        let changed = try await recorder.expect("EmailConfigs/Update") {
            try await admin.updateEmailConfig(
                EmailConfigChange {
                    $0.delivery = .smtp
                    $0.smtp = SmtpConfig(host: "127.0.0.1", port: 1, security: .none)
                    $0.senderAddress = "no-reply@example.com"
                    $0.allowPrivateAddresses = true
                })
        }
        let emailconfigsGet = try await recorder.expect("EmailConfigs/Get") { try await admin.emailConfig() }
        #expect(emailconfigsGet == changed)
        let tested = try await recorder.expect("EmailConfigs/Test") {
            try await admin.testEmailConfig(to: "ops@example.com")
        }
        #expect(!tested.ok && tested.delivery == .smtp)
        let preview = try await recorder.expect("EmailConfigs/PreviewTemplate") {
            try await admin.previewMail(.passwordReset)
        }
        #expect(preview.text.contains("oobCode=EXAMPLE") && !preview.fromTemplate)
        let sms = try await recorder.expect("SmsConfigs/Update") {
            try await admin.updateSmsConfig(SMSConfigChange { $0.templates = [SmsTemplate(text: "Acme: %CODE%")] })
        }
        let smsConfig = try await recorder.expect("SmsConfigs/Get") { try await admin.smsConfig() }
        #expect(smsConfig == sms && sms.templates.count == 1)
        _ = try await AccountsClient(channel: scene.channel).sendOobCode(
            AccountsSendOobCodeRequest(tenantID: "acme", requestType: .passwordReset, email: "ada@example.com"))
        let listed = try await recorder.expect("Outbox/List") { try await admin.listOutbox(state: .pending).all() }
        let id = try #require(listed.first).messageID
        let (message, contents) = try await recorder.expect("Outbox/Get") { try await admin.getOutboxMessage(id) }
        #expect(message.to == "ada@example.com" && !contents.link.isEmpty)
        let outboxRetry = try await recorder.expect("Outbox/Retry") { try await admin.retryOutboxMessage(id) }
        #expect(outboxRetry.messageID == id)
        try await recorder.expect("Outbox/Delete") { try await admin.deleteOutboxMessage(id) }
    }
}
