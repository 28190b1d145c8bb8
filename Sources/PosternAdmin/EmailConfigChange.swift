public import Base
public import Messages

/// A change of a tenant's mail settings, for `TenantAdmin.updateEmailConfig`.
///
/// Nil leaves a field as it is; an empty value removes it. An `smtp` or `webhook` without a secret keeps the present
/// secret, unless mail would then go to another host.
///
/// ```swift
/// try await tenant.updateEmailConfig(EmailConfigChange { $0.senderName = "Acme" })
/// ```
public struct EmailConfigChange: Sendable {
    /// The way mail goes out: the outbox, SMTP or a webhook.
    public var delivery: EmailDelivery?
    /// The mail server, for delivery by SMTP.
    public var smtp: SmtpConfig?
    /// The receiver of signed requests, for delivery by webhook.
    public var webhook: WebhookConfig?
    /// The name in the mail's From line.
    public var senderName: Text?
    /// The address in the mail's From line.
    public var senderAddress: Text?
    /// The address that answers go to.
    public var replyTo: Text?
    /// The page that links lead to: https, or http to this machine. Empty: the server's own setting.
    public var actionURL: Text?
    /// The words of the mails, by kind and language; at most 50. Replaces the whole list.
    public var templates: [EmailTemplate]?
    /// Lets mail servers and webhooks be in private networks or on the server's machine. Needs a project-admin.
    public var allowPrivateAddresses: Bool?

    /// Creates a change. The closure sets the fields.
    public init(_ fill: (inout EmailConfigChange) -> Void = { _ in }) { fill(&self) }

    var fields: MaskedFields<EmailConfig> {
        var fields = MaskedFields<EmailConfig>()
        fields.set(.delivery, \.delivery, delivery)
        fields.setMessage(.smtp, \.smtp, smtp)
        fields.setMessage(.webhook, \.webhook, webhook)
        fields.set(.senderName, \.senderName, senderName)
        fields.set(.senderAddress, \.senderAddress, senderAddress)
        fields.set(.replyTo, \.replyTo, replyTo)
        fields.set(.actionURL, \.actionURL, actionURL)
        fields.set(.templates, \.templates, templates)
        fields.set(.allowPrivateAddresses, \.allowPrivateAddresses, allowPrivateAddresses)
        return fields
    }
}
