import Base
import Messages
import Outbound

/// A masked change of how a tenant's mail goes out, checked field by field. Pure.
struct EmailConfigChange {
    let wanted: EmailConfig
    let paths: Set<Text>

    private static let known: Set<Text> = [
        "delivery", "smtp", "webhook", "sender_name", "sender_address", "reply_to", "action_url", "templates",
        "allow_private_addresses",
    ]

    /// INVALID_UPDATE_MASK.
    init(_ wanted: EmailConfig, paths: [Text]) throws(Failure) {
        self.wanted = wanted
        self.paths = Set(paths)
        guard !paths.isEmpty, self.paths.count == paths.count, self.paths.isSubset(of: Self.known) else {
            throw .invalid("INVALID_UPDATE_MASK", field: "update_mask", "must name fields of EmailConfig, each once")
        }
    }

    var newPassword: Secret? { secret("smtp", wanted.smtp?.password) }
    var newSigningSecret: Secret? { secret("webhook", wanted.webhook?.signingSecret) }

    private func secret(_ path: Text, _ secret: Secret?) -> Secret? {
        guard paths.contains(path), let secret, !secret.isEmpty else { return nil }
        return secret
    }

    /// Whether the kept secret would go to somebody else than it was given for.
    func movesPassword(from old: EmailConfig) -> Bool {
        paths.contains("smtp")
            && (wanted.smtp?.host != old.smtp?.host || wanted.smtp?.port != old.smtp?.port
                || wanted.smtp?.security != old.smtp?.security)
    }

    func apply(to config: inout EmailConfig, limits: Limits) throws(Failure) {
        if paths.contains("delivery") { config.delivery = wanted.delivery }
        if paths.contains("smtp") {
            let hadPassword = config.smtp?.hasPassword == true && !movesPassword(from: config)
            config.smtp = wanted.smtp
            config.smtp?.password = .empty
            config.smtp?.hasPassword = newPassword != nil || hadPassword && wanted.smtp?.username.isEmpty == false
        }
        if paths.contains("webhook") {
            let hadSecret = config.webhook?.hasSigningSecret == true && config.webhook?.url == wanted.webhook?.url
            config.webhook = wanted.webhook
            config.webhook?.signingSecret = .empty
            config.webhook?.hasSigningSecret = newSigningSecret != nil || hadSecret
        }
        if paths.contains("sender_name") { config.senderName = wanted.senderName }
        if paths.contains("sender_address") { config.senderAddress = wanted.senderAddress }
        if paths.contains("reply_to") { config.replyTo = wanted.replyTo }
        if paths.contains("action_url") { config.actionURL = wanted.actionURL }
        if paths.contains("templates") { config.templates = wanted.templates }
        if paths.contains("allow_private_addresses") { config.allowPrivateAddresses = wanted.allowPrivateAddresses }
        try EmailConfigRules.check(config, limits: limits)
    }
}

enum EmailConfigRules {
    static let templatesMax = 50

    static func check(_ config: EmailConfig, limits: Limits) throws(Failure) {
        try Values.checkDisplayName(config.senderName, field: "config.sender_name", limits: limits)
        for (field, address) in [("config.sender_address", config.senderAddress), ("config.reply_to", config.replyTo)]
        where !address.isEmpty { _ = try Values.email(address, field: field, form: .ascii, limits: limits) }
        if !config.actionURL.isEmpty {
            do {
                try Values.checkContinueURL(config.actionURL, limits: limits)
            } catch {
                throw .invalid("INVALID_ACTION_URL", field: "config.action_url", "must be an https URL")
            }
        }
        if let smtp = config.smtp { try check(smtp, config) }
        if let webhook = config.webhook { try check(webhook) }
        guard config.templates.count <= templatesMax else {
            throw .invalid("INVALID_TEMPLATE", field: "config.templates", "must be at most \(templatesMax)")
        }
        for template in config.templates { try check(template) }
        switch config.delivery {
        case .unspecified: throw .invalid("INVALID_DELIVERY", field: "config.delivery", "must be set")
        case .outbox: break
        case .smtp:
            guard config.smtp != nil else {
                throw .invalid("INVALID_SMTP_SERVER", field: "config.smtp", "is required to deliver by SMTP")
            }
            guard !config.senderAddress.isEmpty else {
                throw .invalid("SENDER_REQUIRED", field: "config.sender_address", "is required to deliver by SMTP")
            }
        case .webhook:
            guard config.webhook?.hasSigningSecret == true else {
                throw .invalid("INVALID_WEBHOOK", field: "config.webhook", "needs a url and a signing secret")
            }
        }
    }

    private static func check(_ smtp: SmtpConfig, _ config: EmailConfig) throws(Failure) {
        let hostCharacters = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:".utf8)
        guard (1...253).contains(smtp.host.byteCount), smtp.host.bytes.allSatisfy(hostCharacters.contains),
            (1...65_535).contains(smtp.port), smtp.security != .unspecified
        else {
            throw .invalid("INVALID_SMTP_SERVER", field: "config.smtp", "needs a host, a port and a kind of security")
        }
        guard smtp.security != .none || config.allowPrivateAddresses else {
            throw .invalid(
                "INVALID_SMTP_SERVER", field: "config.smtp.security",
                "clear text goes to this machine only, and needs allow_private_addresses")
        }
        guard smtp.username.byteCount <= 256, smtp.username.bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw .invalid("INVALID_SMTP_SERVER", field: "config.smtp.username", "must have at most 256 bytes")
        }
    }

    private static func check(_ webhook: WebhookConfig) throws(Failure) {
        guard HTTPURL(webhook.url) != nil else {
            throw .invalid("INVALID_WEBHOOK", field: "config.webhook.url", "must be an https URL")
        }
    }

    private static func check(_ template: EmailTemplate) throws(Failure) {
        let field = "config.templates"
        guard template.requestType != .unspecified, (1...200).contains(template.subject.byteCount),
            (1...8_192).contains(template.text.byteCount), (1...32_768).contains(template.html.byteCount),
            template.locale.byteCount <= 35
        else {
            throw .invalid(
                "INVALID_TEMPLATE", field: field, "needs a kind, subject ≤ 200, text ≤ 8,192, html ≤ 32,768 bytes")
        }
        guard template.subject.bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw .invalid("INVALID_TEMPLATE", field: field, "a subject must not hold control characters")
        }
        for body in [template.text, template.html] {
            guard body.contains("%LINK%") else {
                throw .invalid("INVALID_TEMPLATE", field: field, "text and html must hold %LINK%")
            }
        }
        for part in [template.subject, template.text, template.html] {
            if let unknown = MailText.unknownPlaceholder(in: part.string) {
                throw .invalid("INVALID_TEMPLATE", field: field, "%\(unknown)% is no placeholder")
            }
        }
    }
}

extension EmailConfig {
    /// Whether private addresses are allowed for hosts that they were not allowed for before: an allowance is for the
    /// mail server and the webhook that the project-admin saw when it was given.
    func reachesElsewhere(than old: EmailConfig) -> Bool {
        guard allowPrivateAddresses else { return false }
        guard old.allowPrivateAddresses else { return true }
        let isSameServer = smtp == nil || smtp?.host == old.smtp?.host && smtp?.port == old.smtp?.port
        return !isSameServer || webhook != nil && webhook?.url != old.webhook?.url
    }
}
