public import Base
public import Messages

/// The checks of a tenant's mail settings, each with its reason. Pure.
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

    /// Checks that the fields go together after a change of the masked ones. Cheap, because it runs in the transaction.
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
                let isName = !name.isEmpty && name.allSatisfy { $0 == UInt8(ascii: "_") || $0.isASCIIUppercase }
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
    /// The bytes that count for `Limits.emailTemplatesBytesMax`.
    fileprivate var byteCount: Int { locale.byteCount + subject.byteCount + text.byteCount + html.byteCount }
}
