public import Base
import Crypto
public import Messages
import Rules
public import Store

/// Each tenant's settings for outgoing mail. Nothing is kept in memory: a mail reads its tenant's row. Any thread.
public struct EmailConfigs: Sendable {
    private let resources: Resources
    private let sealing: SealingKey
    /// The page to which links lead when the tenant has no page of its own.
    private let serverActionURL: Text

    init(resources: Resources, sealing: SealingKey, serverActionURL: Text) {
        self.resources = resources
        self.sealing = sealing
        self.serverActionURL = serverActionURL
    }

    public static let defaults = EmailConfig(delivery: .outbox)

    public func get(tenantID: Text) throws -> EmailConfig {
        try resources.store.read { try $0.emailConfig(tenantID: tenantID) }
    }

    /// Changes a tenant's mail settings. Refusals: those of `EmailConfigRules`; INSUFFICIENT_PERMISSION for private
    /// addresses without a project-admin.
    public func update(
        _ wanted: EmailConfig, _ mask: UpdateMask<EmailConfig>, tenantID: Text, isProjectAdmin: Bool,
        validateOnly: Bool, origin: Origin
    ) async throws -> EmailConfig {
        let limits = resources.limits
        let known = try get(tenantID: tenantID)
        let change = try EmailConfigChange(wanted, mask, after: known, limits: limits)
        try change.checkMailLengths(after: known, serverActionURL: serverActionURL, limits: limits)
        let now = resources.clock.now()
        let password = try change.newPassword.map { try seal($0, "smtp password", tenantID) }
        let signingSecret = try change.newSigningSecret.map { try seal($0, "webhook secret", tenantID) }
        return try await resources.store.write { transaction in
            _ = try transaction.reading.liveTenant(tenantID)
            return try transaction.answeringRepeat(of: origin, validateOnly: validateOnly, now: now) {
                var stored = try transaction.get(Tables.emailConfigs, TenantPrefix(tenantID)) ?? StoredEmailConfig()
                let old = stored.config ?? Self.defaults
                var new = old
                try change.apply(to: &new)
                if new.reachesElsewhere(than: old), !isProjectAdmin {
                    throw Failure.needsProjectAdmin(
                        "allow_private_addresses, and where mail goes while it is set, are set by a project-admin.")
                }
                new.updatedAtMicros = max(now.microseconds, old.updatedAtMicros + 1)
                new.revision += 1
                if validateOnly { return new }
                stored.config = new
                if let password { stored.sealedSmtpPassword = password }
                if new.smtp?.hasPassword != true { stored.sealedSmtpPassword = [] }
                if let signingSecret { stored.sealedWebhookSecret = signingSecret }
                if new.webhook?.hasSigningSecret != true { stored.sealedWebhookSecret = [] }
                try transaction.put(Tables.emailConfigs, TenantPrefix(tenantID), stored)
                try transaction.appendEvent(
                    .emailConfigUpdated, tenantID: tenantID, origin: origin, detail: mask.names, now: now)
                return new
            }
        }
    }

    func stored(tenantID: Text) throws -> StoredEmailConfig {
        try resources.store.read { try $0.get(Tables.emailConfigs, TenantPrefix(tenantID)) } ?? StoredEmailConfig()
    }

    /// `Secret.empty` when there is none or it was sealed under another master key: the delivery then fails.
    func password(_ stored: StoredEmailConfig, tenantID: Text) -> Secret {
        open(stored.sealedSmtpPassword, "smtp password", tenantID)
    }

    func signingSecret(_ stored: StoredEmailConfig, tenantID: Text) -> Secret {
        open(stored.sealedWebhookSecret, "webhook secret", tenantID)
    }

    private func seal(_ secret: Secret, _ kind: String, _ tenantID: Text) throws -> [UInt8] {
        try sealing.seal(secret, context: Self.context(kind, tenantID), random: resources.random)
    }

    private func open(_ sealed: [UInt8], _ kind: String, _ tenantID: Text) -> Secret {
        guard !sealed.isEmpty else { return .empty }
        return (try? sealing.open(sealed, context: Self.context(kind, tenantID))) ?? .empty
    }

    private static func context(_ kind: String, _ tenantID: Text) -> [UInt8] {
        [UInt8](kind.utf8) + [0] + tenantID.bytes
    }
}

extension ReadTransaction {
    /// A tenant's mail settings as EmailConfigs.Get answers them.
    public func emailConfig(tenantID: Text) throws -> EmailConfig {
        try get(Tables.emailConfigs, TenantPrefix(tenantID))?.config ?? EmailConfigs.defaults
    }
}
