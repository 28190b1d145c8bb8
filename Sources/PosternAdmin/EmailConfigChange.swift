public import Base
public import Messages

/// What `updateEmailConfig` changes: nil leaves a field as it is, an empty value removes it. The fields of
/// `EmailConfig` explain them. `smtp` and `webhook` without a secret keep the present one, unless it would go to
/// another host.
///
/// `EmailConfigChange { $0.senderName = "Acme" }`
public struct EmailConfigChange: Sendable {
    public var delivery: EmailDelivery?
    public var smtp: SmtpConfig?
    public var webhook: WebhookConfig?
    public var senderName: Text?
    public var senderAddress: Text?
    public var replyTo: Text?
    public var actionURL: Text?
    public var templates: [EmailTemplate]?
    public var allowPrivateAddresses: Bool?

    public init(_ fill: (inout EmailConfigChange) -> Void = { _ in }) { fill(&self) }

    var fields: MaskedFields<EmailConfig> {
        var fields = MaskedFields<EmailConfig>()
        fields.set("delivery", \.delivery, delivery)
        fields.setMessage("smtp", \.smtp, smtp)
        fields.setMessage("webhook", \.webhook, webhook)
        fields.set("sender_name", \.senderName, senderName)
        fields.set("sender_address", \.senderAddress, senderAddress)
        fields.set("reply_to", \.replyTo, replyTo)
        fields.set("action_url", \.actionURL, actionURL)
        fields.set("templates", \.templates, templates)
        fields.set("allow_private_addresses", \.allowPrivateAddresses, allowPrivateAddresses)
        return fields
    }
}
