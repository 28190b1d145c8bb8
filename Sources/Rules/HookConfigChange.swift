public import Base
public import Messages

/// The moment at which a hook is asked.
public enum HookPoint: String, Sendable, CaseIterable {
    case beforeCreate = "before_create"
    case beforeSignIn = "before_sign_in"
}

extension HookConfig {
    public subscript(point: HookPoint) -> Hook? {
        switch point {
        case .beforeCreate: beforeCreate
        case .beforeSignIn: beforeSignIn
        }
    }

    /// Whether private addresses are allowed for a URL that they were not allowed for before.
    public func reachesElsewhere(than old: HookConfig) -> Bool {
        guard allowPrivateAddresses else { return false }
        return !old.allowPrivateAddresses
            || HookPoint.allCases.contains { self[$0]?.webhook?.url != old[$0]?.webhook?.url && self[$0] != nil }
    }
}

/// A masked change of a tenant's hooks, checked field by field. Pure.
public struct HookConfigChange: Sendable {
    private let wanted: HookConfig
    public let mask: UpdateMask<HookConfig>

    /// INVALID_HOOK, INVALID_WEBHOOK.
    public init(_ wanted: HookConfig, _ mask: UpdateMask<HookConfig>) throws(Failure) {
        (self.wanted, self.mask) = (wanted, mask)
        for path in mask.paths {
            switch path {
            case .beforeCreate: try Self.check(wanted.beforeCreate)
            case .beforeSignIn: try Self.check(wanted.beforeSignIn)
            case .allowPrivateAddresses: break  // `apply` checks the URLs against it.
            }
        }
    }

    private static func check(_ hook: Hook?) throws(Failure) {
        guard let hook else { return }
        guard hook.timeoutMillis == 0 || (100...5_000).contains(hook.timeoutMillis) else {
            throw .invalid(.invalidHook, field: "timeout_millis", "must be 0 or 100 to 5,000")
        }
        guard let webhook = hook.webhook, !webhook.url.isEmpty else {
            throw .invalid(.invalidHook, field: "webhook.url", "is required; leave the hook out to remove it")
        }
        try EmailConfigRules.check(webhook)
    }

    public func newSecret(of point: HookPoint) -> Secret? {
        guard mask.contains(point.path), let secret = wanted[point]?.webhook?.signingSecret, !secret.isEmpty else {
            return nil
        }
        return secret
    }

    /// INVALID_HOOK, INVALID_WEBHOOK for fields that do not go together.
    public func apply(to config: inout HookConfig) throws(Failure) {
        let old = config
        for path in mask.paths { config.copy(path, from: wanted) }
        for point in HookPoint.allCases where mask.contains(point.path) {
            // A secret is kept only for the URL that it was given for.
            let before = old[point]?.webhook
            let hadSecret = before?.hasSigningSecret == true && before?.url == wanted[point]?.webhook?.url
            let hasSecret = newSecret(of: point) != nil || hadSecret
            switch point {
            case .beforeCreate: config.beforeCreate?.webhook?.removeSecret(hasSecret: hasSecret)
            case .beforeSignIn: config.beforeSignIn?.webhook?.removeSecret(hasSecret: hasSecret)
            }
            guard config[point] == nil || hasSecret else {
                throw .invalid(.invalidHook, field: "\(point.rawValue).webhook", "needs a signing secret")
            }
        }
        // A URL from before this rule must not stop other changes.
        for point in HookPoint.allCases where mask.containsAny(of: point.path, .allowPrivateAddresses) {
            try ReachRules.check(
                config[point]?.webhook, allowPrivateAddresses: config.allowPrivateAddresses,
                field: "\(point.rawValue).webhook.url")
        }
    }
}

extension HookPoint {
    fileprivate var path: HookConfig.Path {
        switch self {
        case .beforeCreate: .beforeCreate
        case .beforeSignIn: .beforeSignIn
        }
    }
}

extension WebhookConfig {
    /// Removes the signing secret, which is kept apart and sealed, and notes whether there is one.
    fileprivate mutating func removeSecret(hasSecret: Bool) {
        signingSecret = .empty
        hasSigningSecret = hasSecret
    }
}
