public import Base
import Crypto
public import Messages
import Rules
public import Store

/// Each tenant's settings for SMS. Nothing is kept in memory: an SMS reads its tenant's row. Any thread.
public struct SMSConfigs: Sendable {
    private let rows: TenantConfigs<StoredSmsConfig>

    init(resources: Resources, sealing: SealingKey) {
        self.rows = TenantConfigs(resources: resources, sealing: sealing)
    }

    public static let defaults = SmsConfig(delivery: .outbox)

    public func get(tenantID: Text) throws -> SmsConfig { try rows.get(tenantID: tenantID) }

    /// Changes a tenant's settings for SMS. Refusals: those of `SMSConfigChange`; REVISION_MISMATCH;
    /// INSUFFICIENT_PERMISSION for private addresses without a project-admin.
    public func update(
        _ wanted: SmsConfig, _ mask: UpdateMask<SmsConfig>, expected: Int64, tenantID: Text, isProjectAdmin: Bool,
        validateOnly: Bool, origin: Origin
    ) async throws -> SmsConfig {
        let change = try SMSConfigChange(wanted, mask, limits: rows.resources.limits)
        return try await rows.update(
            change, expected: expected, tenantID: tenantID, isProjectAdmin: isProjectAdmin,
            validateOnly: validateOnly, origin: origin)
    }

    func stored(tenantID: Text) throws -> StoredSmsConfig { try rows.stored(tenantID: tenantID) }

    /// `Secret.empty` when there is none or it was sealed under another master key: the delivery then fails.
    func signingSecret(_ stored: StoredSmsConfig, tenantID: Text) -> Secret {
        rows.open(StoredSmsConfig.signingSecret, of: stored, tenantID: tenantID)
    }
}

extension ReadTransaction {
    /// A tenant's settings of SMS as SmsConfigs.Get answers them.
    public func smsConfig(tenantID: Text) throws -> SmsConfig {
        try get(Tables.smsConfigs, TenantPrefix(tenantID))?.config ?? SMSConfigs.defaults
    }
}

extension SmsConfig: TenantConfig {}

extension SMSConfigChange: TenantConfigChange {}

extension StoredSmsConfig: TenantConfigRecord {
    typealias Change = SMSConfigChange

    static var table: Table<TenantPrefix, StoredSmsConfig> { Tables.smsConfigs }
    static var defaults: SmsConfig { SMSConfigs.defaults }
    static var secrets: [ConfigSecret<StoredSmsConfig>] { [signingSecret] }
    static var event: EventKind { .smsConfigUpdated }
    static var destination: String { "where SMS go" }

    fileprivate static var signingSecret: ConfigSecret<StoredSmsConfig> {
        ConfigSecret(
            kind: "sms webhook secret", field: \.sealedWebhookSecret, wanted: { $0.newSigningSecret },
            isKept: { $0.webhook?.hasSigningSecret == true })
    }
}
