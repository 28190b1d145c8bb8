public import Base
public import Messages

/// A masked change of a tenant's mail settings, checked field by field. Pure.
public struct EmailConfigChange: Sendable {
    public let wanted: EmailConfig
    public let mask: UpdateMask<EmailConfig>
    private let changesTemplates: Bool

    /// The refusals of `EmailConfigRules` for each masked field by itself: nothing that was not checked is sealed,
    /// stored or searched for placeholders. Templates that are those of `old` were checked when they were set: rules
    /// that are newer must not stop other changes.
    public init(
        _ wanted: EmailConfig, _ mask: UpdateMask<EmailConfig>, after old: EmailConfig, limits: Limits
    ) throws(Failure) {
        self.wanted = wanted
        self.mask = mask
        changesTemplates = mask.contains(.templates) && wanted.templates != old.templates
        for path in mask.paths where path != .templates || changesTemplates {
            try EmailConfigRules.check(wanted, path, limits: limits)
        }
    }

    /// INVALID_TEMPLATE when this change lets a mail be longer than the limit. It looks at all templates, so it runs
    /// before the transaction. When two concurrent changes make a mail too long only together, neither is refused, and
    /// the mail has the server's own words.
    public func checkMailLengths(after old: EmailConfig, serverActionURL: Text, limits: Limits) throws(Failure) {
        // No other field makes a mail longer; a template from before this rule must not stop other changes.
        guard changesTemplates || mask.contains(.actionURL) else { return }
        let own = mask.contains(.actionURL) ? wanted.actionURL : old.actionURL
        let templates = mask.contains(.templates) ? wanted.templates : old.templates
        let actionURL = own.isEmpty ? serverActionURL : own
        for template in templates where !MailText.fits(template, actionURL: actionURL, limits: limits) {
            throw .invalid(
                .invalidTemplate, field: "config.templates",
                "with the longest names and links a mail would have more than \(limits.mailBytesMax) bytes")
        }
    }

    public var newPassword: Secret? { secret(.smtp, wanted.smtp?.password) }
    public var newSigningSecret: Secret? { secret(.webhook, wanted.webhook?.signingSecret) }

    private func secret(_ path: EmailConfig.Path, _ secret: Secret?) -> Secret? {
        guard mask.contains(path), let secret, !secret.isEmpty else { return nil }
        return secret
    }

    /// Whether the kept password would go to another server than the one it was given for.
    func movesPassword(from old: EmailConfig) -> Bool {
        mask.contains(.smtp)
            && (wanted.smtp?.host != old.smtp?.host || wanted.smtp?.port != old.smtp?.port
                || wanted.smtp?.security != old.smtp?.security)
    }

    /// The refusals of `EmailConfigRules` for fields that do not go together.
    public func apply(to config: inout EmailConfig) throws(Failure) {
        let old = config
        for path in mask.paths { config.copy(path, from: wanted) }
        // Secrets are sealed beside the configuration.
        if mask.contains(.smtp) {
            let hadPassword = old.smtp?.hasPassword == true && !movesPassword(from: old)
            config.smtp?.password = .empty
            config.smtp?.hasPassword = newPassword != nil || hadPassword && wanted.smtp?.username.isEmpty == false
        }
        if mask.contains(.webhook) {
            let hadSecret = old.webhook?.hasSigningSecret == true && old.webhook?.url == wanted.webhook?.url
            config.webhook?.signingSecret = .empty
            config.webhook?.hasSigningSecret = newSigningSecret != nil || hadSecret
        }
        try EmailConfigRules.checkWhole(config, mask)
    }
}

extension EmailConfig {
    /// Whether private addresses are allowed for hosts that they were not allowed for before: an allowance is for the
    /// mail server and the webhook that the project-admin saw when it was given. With TLS, the certificate binds the
    /// host's name; clear text goes to this machine only.
    public func reachesElsewhere(than old: EmailConfig) -> Bool {
        guard allowPrivateAddresses else { return false }
        guard old.allowPrivateAddresses else { return true }
        let isSameServer =
            smtp == nil
            || smtp?.host == old.smtp?.host && smtp?.port == old.smtp?.port && smtp?.security == old.smtp?.security
        return !isSameServer || webhook != nil && webhook?.url != old.webhook?.url
    }
}
