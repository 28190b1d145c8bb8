public import Base
import Crypto
public import Messages
import Outbound
import Rules
public import Store

/// Each tenant's settings for SMS. Nothing is kept in memory: an SMS reads its tenant's row. Any thread.
public struct SMSConfigs: Sendable {
    private let resources: Resources
    private let sealing: SealingKey

    init(resources: Resources, sealing: SealingKey) {
        self.resources = resources
        self.sealing = sealing
    }

    public static let defaults = SmsConfig(delivery: .outbox)

    public func get(tenantID: Text) throws -> SmsConfig {
        try resources.store.read { try $0.smsConfig(tenantID: tenantID) }
    }

    /// Changes a tenant's settings for SMS. Refusals: those of `SMSConfigChange`; INSUFFICIENT_PERMISSION for private
    /// addresses without a project-admin.
    public func update(
        _ wanted: SmsConfig, _ mask: UpdateMask<SmsConfig>, tenantID: Text, isProjectAdmin: Bool, validateOnly: Bool,
        origin: Origin
    ) async throws -> SmsConfig {
        let change = try SMSConfigChange(wanted, mask, limits: resources.limits)
        let now = resources.clock.now()
        let signingSecret = try change.newSigningSecret.map {
            try sealing.seal($0, context: Self.context(tenantID), random: resources.random)
        }
        return try await resources.store.write { transaction in
            _ = try transaction.reading.liveTenant(tenantID)
            return try transaction.answeringRepeat(of: origin, validateOnly: validateOnly, now: now) {
                var stored = try transaction.get(Tables.smsConfigs, TenantPrefix(tenantID)) ?? StoredSmsConfig()
                let old = stored.config ?? Self.defaults
                var new = old
                try change.apply(to: &new)
                if new.reachesElsewhere(than: old), !isProjectAdmin {
                    throw Failure.needsProjectAdmin(
                        "allow_private_addresses, and where SMS go while it is set, are set by a project-admin.")
                }
                new.updatedAtMicros = max(now.microseconds, old.updatedAtMicros &+ 1)
                new.revision &+= 1
                if validateOnly { return new }
                stored.config = new
                if let signingSecret { stored.sealedWebhookSecret = signingSecret }
                if new.webhook?.hasSigningSecret != true { stored.sealedWebhookSecret = [] }
                try transaction.put(Tables.smsConfigs, TenantPrefix(tenantID), stored)
                try transaction.appendEvent(
                    .smsConfigUpdated, tenantID: tenantID, origin: origin, detail: mask.names, now: now)
                return new
            }
        }
    }

    func stored(tenantID: Text) throws -> StoredSmsConfig {
        try resources.store.read { try $0.get(Tables.smsConfigs, TenantPrefix(tenantID)) } ?? StoredSmsConfig()
    }

    /// `Secret.empty` when there is none or it was sealed under another master key: the delivery then fails.
    func signingSecret(_ stored: StoredSmsConfig, tenantID: Text) -> Secret {
        guard !stored.sealedWebhookSecret.isEmpty else { return .empty }
        return (try? sealing.open(stored.sealedWebhookSecret, context: Self.context(tenantID))) ?? .empty
    }

    private static func context(_ tenantID: Text) -> [UInt8] {
        [UInt8]("sms webhook secret".utf8) + [0] + tenantID.bytes
    }
}

extension ReadTransaction {
    /// A tenant's settings of SMS as SmsConfigs.Get answers them.
    public func smsConfig(tenantID: Text) throws -> SmsConfig {
        try get(Tables.smsConfigs, TenantPrefix(tenantID))?.config ?? SMSConfigs.defaults
    }
}

/// A masked change of a tenant's settings for SMS, checked field by field. Pure.
private struct SMSConfigChange {
    let wanted: SmsConfig
    let mask: UpdateMask<SmsConfig>

    /// INVALID_DELIVERY, INVALID_WEBHOOK, INVALID_TEMPLATE for each masked field by itself.
    init(_ wanted: SmsConfig, _ mask: UpdateMask<SmsConfig>, limits: Limits) throws(Failure) {
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

    var newSigningSecret: Secret? {
        guard mask.contains(.webhook), let secret = wanted.webhook?.signingSecret, !secret.isEmpty else { return nil }
        return secret
    }

    /// INVALID_WEBHOOK for fields that do not go together.
    func apply(to config: inout SmsConfig) throws(Failure) {
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
    fileprivate func reachesElsewhere(than old: SmsConfig) -> Bool {
        guard allowPrivateAddresses else { return false }
        return !old.allowPrivateAddresses || webhook != nil && webhook?.url != old.webhook?.url
    }
}
