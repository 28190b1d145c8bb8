public import Messages

/// A change of a tenant's SMS settings, for `TenantAdmin.updateSmsConfig`.
///
/// Nil leaves a field as it is; an empty value removes it. A `webhook` without a secret keeps the present secret,
/// unless SMS would then go to another URL.
///
/// ```swift
/// try await tenant.updateSmsConfig(SMSConfigChange { $0.templates = [SmsTemplate(text: "Acme: %CODE%")] })
/// ```
public struct SMSConfigChange: Sendable {
    /// The way SMS go out: the outbox, or a webhook.
    public var delivery: SmsDelivery?
    /// The receiver of signed requests, for delivery by webhook.
    public var webhook: WebhookConfig?
    /// The words of the SMS, by purpose and language; at most 50. Replaces the whole list.
    public var templates: [SmsTemplate]?
    /// Lets the webhook be in a private network or on the server's machine. Needs a project-admin.
    public var allowPrivateAddresses: Bool?

    /// Creates a change. The closure sets the fields.
    public init(_ fill: (inout SMSConfigChange) -> Void = { _ in }) { fill(&self) }

    var fields: MaskedFields<SmsConfig> {
        var fields = MaskedFields<SmsConfig>()
        fields.set(.delivery, \.delivery, delivery)
        fields.setMessage(.webhook, \.webhook, webhook)
        fields.set(.templates, \.templates, templates)
        fields.set(.allowPrivateAddresses, \.allowPrivateAddresses, allowPrivateAddresses)
        return fields
    }
}
