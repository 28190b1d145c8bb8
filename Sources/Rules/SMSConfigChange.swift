public import Base
public import Messages

/// A masked change of a tenant's settings for SMS, checked field by field. Pure.
public struct SMSConfigChange: Sendable {
    private let wanted: SmsConfig
    public let mask: UpdateMask<SmsConfig>

    /// INVALID_DELIVERY, INVALID_WEBHOOK, INVALID_TEMPLATE for each masked field by itself.
    public init(_ wanted: SmsConfig, _ mask: UpdateMask<SmsConfig>, limits: Limits) throws(Failure) {
        self.wanted = wanted
        self.mask = mask
        for path in mask.paths {
            switch path {
            case .webhook: if let webhook = wanted.webhook { try EmailConfigRules.check(webhook) }
            case .templates: try SMSText.check(wanted.templates, limits: limits)
            case .delivery:
                guard wanted.delivery != .unspecified else {
                    throw .invalid(.invalidDelivery, field: "config.delivery", "must be set")
                }
            case .allowPrivateAddresses: break  // `apply` checks the webhook against it.
            }
        }
    }

    public var newSigningSecret: Secret? {
        guard mask.contains(.webhook), let secret = wanted.webhook?.signingSecret, !secret.isEmpty else { return nil }
        return secret
    }

    /// INVALID_WEBHOOK for fields that do not go together.
    public func apply(to config: inout SmsConfig) throws(Failure) {
        let old = config
        for path in mask.paths { config.copy(path, from: wanted) }
        if mask.contains(.webhook) {
            // A secret is kept only for the URL that it was given for.
            let hadSecret = old.webhook?.hasSigningSecret == true && old.webhook?.url == wanted.webhook?.url
            config.webhook?.signingSecret = .empty
            config.webhook?.hasSigningSecret = newSigningSecret != nil || hadSecret
        }
        // A URL from before this rule must not stop other changes.
        if mask.containsAny(of: .webhook, .delivery, .allowPrivateAddresses) {
            try ReachRules.check(config.webhook, allowPrivateAddresses: config.allowPrivateAddresses)
        }
        guard config.delivery != .webhook || config.webhook?.hasSigningSecret == true else {
            throw .invalid(.invalidWebhook, field: "config.webhook", "needs a url and a signing secret")
        }
    }
}

extension SmsConfig {
    /// Whether private addresses are allowed for a webhook that they were not allowed for before.
    public func reachesElsewhere(than old: SmsConfig) -> Bool {
        guard allowPrivateAddresses else { return false }
        return !old.allowPrivateAddresses || webhook != nil && webhook?.url != old.webhook?.url
    }
}
