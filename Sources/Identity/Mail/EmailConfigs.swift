public import Base
import Crypto
public import Messages
import Rules
public import Store

/// Each tenant's settings for outgoing mail. Nothing is kept in memory: a mail reads its tenant's row. Any thread.
public struct EmailConfigs: Sendable {
    private let rows: TenantConfigs<StoredEmailConfig>
    /// The page to which links lead when the tenant has no page of its own.
    private let serverActionURL: Text

    init(resources: Resources, sealing: SealingKey, serverActionURL: Text) {
        self.rows = TenantConfigs(resources: resources, sealing: sealing)
        self.serverActionURL = serverActionURL
    }

    public static let defaults = EmailConfig(delivery: .outbox)

    public func get(tenantID: Text) throws -> EmailConfig { try rows.get(tenantID: tenantID) }

    /// Changes a tenant's mail settings. Refusals: those of `EmailConfigRules`; REVISION_MISMATCH;
    /// INSUFFICIENT_PERMISSION for private addresses without a project-admin.
    public func update(
        _ wanted: EmailConfig, _ mask: UpdateMask<EmailConfig>, expected: Int64, tenantID: Text, isProjectAdmin: Bool,
        validateOnly: Bool, origin: Origin
    ) async throws -> EmailConfig {
        let limits = rows.resources.limits
        let known = try get(tenantID: tenantID)
        let change = try EmailConfigChange(wanted, mask, after: known, limits: limits)
        try change.checkMailLengths(after: known, serverActionURL: serverActionURL, limits: limits)
        return try await rows.update(
            change, expected: expected, tenantID: tenantID, isProjectAdmin: isProjectAdmin,
            validateOnly: validateOnly, origin: origin)
    }

    func stored(tenantID: Text) throws -> StoredEmailConfig { try rows.stored(tenantID: tenantID) }

    /// `Secret.empty` when there is none or it was sealed under another master key: the delivery then fails.
    func password(_ stored: StoredEmailConfig, tenantID: Text) -> Secret {
        rows.open(StoredEmailConfig.smtpPassword, of: stored, tenantID: tenantID)
    }

    func signingSecret(_ stored: StoredEmailConfig, tenantID: Text) -> Secret {
        rows.open(StoredEmailConfig.signingSecret, of: stored, tenantID: tenantID)
    }
}

extension ReadTransaction {
    /// A tenant's mail settings as EmailConfigs.Get answers them.
    public func emailConfig(tenantID: Text) throws -> EmailConfig {
        try get(Tables.emailConfigs, TenantPrefix(tenantID))?.config ?? EmailConfigs.defaults
    }
}

extension EmailConfig: TenantConfig {}

extension EmailConfigChange: TenantConfigChange {}

extension StoredEmailConfig: TenantConfigRecord {
    typealias Change = EmailConfigChange

    static var table: Table<TenantPrefix, StoredEmailConfig> { Tables.emailConfigs }
    static var defaults: EmailConfig { EmailConfigs.defaults }
    static var secrets: [ConfigSecret<StoredEmailConfig>] { [smtpPassword, signingSecret] }
    static var event: EventKind { .emailConfigUpdated }
    static var destination: String { "where mail goes" }

    fileprivate static var smtpPassword: ConfigSecret<StoredEmailConfig> {
        ConfigSecret(
            kind: "smtp password", field: \.sealedSmtpPassword, wanted: { $0.newPassword },
            isKept: { $0.smtp?.hasPassword == true })
    }

    fileprivate static var signingSecret: ConfigSecret<StoredEmailConfig> {
        ConfigSecret(
            kind: "webhook secret", field: \.sealedWebhookSecret, wanted: { $0.newSigningSecret },
            isKept: { $0.webhook?.hasSigningSecret == true })
    }
}
