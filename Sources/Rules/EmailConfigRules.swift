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

public enum EmailConfigRules {
    static let templatesMax = 50

    /// Checks a field by itself.
    public static func check(_ config: EmailConfig, _ path: EmailConfig.Path, limits: Limits) throws(Failure) {
        switch path {
        case .senderName: try Values.checkDisplayName(config.senderName, field: "config.sender_name", limits: limits)
        case .senderAddress: try check(config.senderAddress, field: "config.sender_address", limits: limits)
        case .replyTo: try check(config.replyTo, field: "config.reply_to", limits: limits)
        case .actionURL: try checkActionURL(config.actionURL, limits: limits)
        case .smtp: if let smtp = config.smtp { try check(smtp, limits: limits) }
        case .webhook: if let webhook = config.webhook { try check(webhook) }
        case .templates:
            guard config.templates.count <= templatesMax else {
                throw .invalid(.invalidTemplate, field: "config.templates", "must be at most \(templatesMax)")
            }
            // First, so that no more than this is ever searched for placeholders.
            let byteCount = config.templates.reduce(0) { $0 + $1.byteCount }
            guard byteCount <= limits.emailTemplatesBytesMax else {
                throw .invalid(
                    .invalidTemplate, field: "config.templates",
                    "must have at most \(limits.emailTemplatesBytesMax) bytes in all")
            }
            for template in config.templates { try check(template, limits: limits) }
        case .delivery, .allowPrivateAddresses: break  // `checkWhole` checks them against other fields.
        }
    }

    private static func check(_ address: Text, field: String, limits: Limits) throws(Failure) {
        if !address.isEmpty { _ = try Values.email(address, field: field, form: .ascii, limits: limits) }
    }

    /// Checks what one field requires of another, after a change of the masked ones. It is cheap, because it runs in
    /// the transaction.
    static func checkWhole(_ config: EmailConfig, _ mask: UpdateMask<EmailConfig>) throws(Failure) {
        if let smtp = config.smtp, smtp.security == .none, !config.allowPrivateAddresses {
            throw .invalid(
                .invalidSmtpServer, field: "config.smtp.security",
                "clear text goes to this machine only, and needs allow_private_addresses")
        }
        // A host from before these rules must not stop other changes.
        if mask.containsAny(of: .smtp, .allowPrivateAddresses) {
            try ReachRules.check(config.smtp, allowPrivateAddresses: config.allowPrivateAddresses)
        }
        if mask.containsAny(of: .webhook, .delivery, .allowPrivateAddresses) {
            try ReachRules.check(config.webhook, allowPrivateAddresses: config.allowPrivateAddresses)
        }
        switch config.delivery {
        case .unspecified: throw .invalid(.invalidDelivery, field: "config.delivery", "must be set")
        case .outbox: break
        case .smtp:
            guard config.smtp != nil else {
                throw .invalid(.invalidSmtpServer, field: "config.smtp", "is required to deliver by SMTP")
            }
            guard !config.senderAddress.isEmpty else {
                throw .invalid(.senderRequired, field: "config.sender_address", "is required to deliver by SMTP")
            }
        case .webhook:
            guard config.webhook?.hasSigningSecret == true else {
                throw .invalid(.invalidWebhook, field: "config.webhook", "needs a url and a signing secret")
            }
        }
    }

    private static func checkActionURL(_ url: Text, limits: Limits) throws(Failure) {
        do {
            try Values.checkContinueURL(url, limits: limits)
        } catch {
            throw .invalid(.invalidActionURL, field: "config.action_url", "must be an https URL")
        }
    }

    private static func check(_ smtp: SmtpConfig, limits: Limits) throws(Failure) {
        let hostCharacters = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:".utf8)
        guard (1...253).contains(smtp.host.byteCount), smtp.host.bytes.allSatisfy(hostCharacters.contains),
            (1...65_535).contains(smtp.port), smtp.security != .unspecified
        else {
            throw .invalid(.invalidSmtpServer, field: "config.smtp", "needs a host, a port and a kind of security")
        }
        guard smtp.username.byteCount <= 256, smtp.username.bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw .invalid(.invalidSmtpServer, field: "config.smtp.username", "must have at most 256 bytes")
        }
        guard smtp.password.byteCount <= limits.smtpPasswordMax else {
            throw .invalid(
                .invalidSmtpServer, field: "config.smtp.password",
                "must have at most \(limits.smtpPasswordMax) bytes")
        }
    }

    public static func check(_ webhook: WebhookConfig) throws(Failure) {
        guard let url = HTTPURL(webhook.url), !url.isPlaintext || url.isOfThisMachine else {
            throw .invalid(.invalidWebhook, field: "config.webhook.url", "must be an https URL with a host")
        }
        guard webhook.signingSecret.isEmpty || (32...256).contains(webhook.signingSecret.byteCount) else {
            throw .invalid(.invalidWebhook, field: "config.webhook.signing_secret", "must have 32 to 256 bytes")
        }
    }

    private static func check(_ template: EmailTemplate, limits: Limits) throws(Failure) {
        let field = "config.templates"
        guard template.requestType != .unspecified, template.requestType != .rejectEmail,
            (1...200).contains(template.subject.byteCount),
            (1...8_192).contains(template.text.byteCount), (1...32_768).contains(template.html.byteCount),
            template.locale.byteCount <= limits.localeMax
        else {
            throw .invalid(
                .invalidTemplate, field: field, "needs a kind, subject ≤ 200, text ≤ 8,192, html ≤ 32,768 bytes")
        }
        guard template.subject.bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw .invalid(.invalidTemplate, field: field, "a subject must not hold control characters")
        }
        for body in [template.text, template.html] {
            guard body.contains("%LINK%") else {
                throw .invalid(.invalidTemplate, field: field, "text and html must hold %LINK%")
            }
        }
        for part in [template.subject, template.text, template.html] {
            if let unknown = MailText.unknownPlaceholder(in: part) {
                throw .invalid(.invalidTemplate, field: field, "%\(unknown)% is no placeholder")
            }
            if !OobCodes.isRejectable(template.requestType), part.contains("%NOT_ME_LINK%") {
                throw .invalid(
                    .invalidTemplate, field: field,
                    "%NOT_ME_LINK% is of VERIFY_EMAIL and VERIFY_AND_CHANGE_EMAIL only")
            }
        }
    }
}

extension MailText {
    /// Whether every mail of this template has at most `Limits.mailBytesMax` bytes, for any recipient, when links begin
    /// with `actionURL`.
    static func fits(_ template: EmailTemplate, actionURL: Text, limits: Limits) -> Bool {
        // A text of the byte that grows most, in HTML and in a URL.
        func worst(_ byteCount: Int) -> Text {
            Text(unchecked: [UInt8](repeating: UInt8(ascii: "\""), count: byteCount))
        }
        let link = ActionLink.make(
            base: actionURL, .verifyAndChangeEmail, code: worst(64), tenantID: worst(64),
            continueURL: worst(limits.continueURLMax))
        let notMeLink = ActionLink.make(
            base: actionURL, .rejectEmail, code: worst(64), tenantID: worst(64), continueURL: .empty)
        let values = Values(
            appName: worst(limits.displayNameMax), email: worst(limits.emailMax), newEmail: worst(limits.emailMax),
            displayName: worst(limits.displayNameMax), link: link,
            notMeLink: OobCodes.isRejectable(template.requestType) ? notMeLink : .empty)
        return parts(template, values, byteCountMax: limits.mailBytesMax) != nil
    }

    /// The first `%NAME%` of capitals that is not one of the placeholders.
    static func unknownPlaceholder(in template: Text) -> Text? {
        template.bytes.withUnsafeBytes { (template: UnsafeRawBufferPointer) -> Text? in
            var sign = template.place(of: percent, from: 0)
            while let first = sign, let last = template.place(of: percent, from: first + 1) {
                let name = template[(first + 1)..<last]
                let isName = !name.isEmpty && name.allSatisfy { $0 == UInt8(ascii: "_") || (0x41...0x5A).contains($0) }
                if isName, placeholderValue(named: UnsafeRawBufferPointer(rebasing: template[first...last])) == nil {
                    return Text(unchecked: Array(name))
                }
                sign = last
            }
            return nil
        }
    }
}

extension EmailTemplate {
    /// What counts for `Limits.emailTemplatesBytesMax`.
    fileprivate var byteCount: Int { locale.byteCount + subject.byteCount + text.byteCount + html.byteCount }
}

extension EmailConfig {
    /// Whether private addresses are allowed for hosts that they were not allowed for before: an allowance is for the
    /// mail server and the webhook that the project-admin saw when it was given.
    public func reachesElsewhere(than old: EmailConfig) -> Bool {
        guard allowPrivateAddresses else { return false }
        guard old.allowPrivateAddresses else { return true }
        let isSameServer = smtp == nil || smtp?.host == old.smtp?.host && smtp?.port == old.smtp?.port
        return !isSameServer || webhook != nil && webhook?.url != old.webhook?.url
    }
}
