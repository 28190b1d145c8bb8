public import Base
import Crypto
public import Messages
import Rules
public import Store

/// Each tenant's blocking hooks. Nothing is kept in memory: a sign-in reads its tenant's row. Any thread.
public struct HookConfigs: Sendable {
    private let rows: TenantConfigs<StoredHookConfig>

    init(resources: Resources, sealing: SealingKey) {
        self.rows = TenantConfigs(resources: resources, sealing: sealing)
    }

    var resources: Resources { rows.resources }

    /// Changes a tenant's hooks. Refusals: those of `HookConfigChange`; REVISION_MISMATCH; INSUFFICIENT_PERMISSION for
    /// private addresses without a project-admin.
    public func update(
        _ wanted: HookConfig, _ mask: UpdateMask<HookConfig>, expected: Int64, tenantID: Text, isProjectAdmin: Bool,
        validateOnly: Bool, origin: Origin
    ) async throws -> HookConfig {
        try await rows.update(
            HookConfigChange(wanted, mask), expected: expected, tenantID: tenantID, isProjectAdmin: isProjectAdmin,
            validateOnly: validateOnly, origin: origin)
    }

    /// The hook that is asked at this point; nil for none.
    func hook(_ point: HookPoint, tenantID: Text) throws -> ConfiguredHook? {
        let stored = try rows.stored(tenantID: tenantID)
        guard let config = stored.config, let hook = config[point], hook.webhook?.url.isEmpty == false else {
            return nil
        }
        return ConfiguredHook(
            tenantID: tenantID, point: point, hook: hook,
            secret: rows.open(StoredHookConfig.secret(of: point), of: stored, tenantID: tenantID),
            allowsPrivateAddresses: config.allowPrivateAddresses)
    }
}

/// A hook of a tenant, and all that is needed to ask it.
struct ConfiguredHook: Sendable {
    let tenantID: Text
    let point: HookPoint
    let hook: Hook
    /// Empty if the secret was sealed under another master key: then the hook fails.
    let secret: Secret
    let allowsPrivateAddresses: Bool
}

extension ReadTransaction {
    /// A tenant's hooks as HookConfigs.Get answers them.
    public func hookConfig(tenantID: Text) throws -> HookConfig {
        try get(Tables.hookConfigs, TenantPrefix(tenantID))?.config ?? HookConfig()
    }
}

extension HookConfig: TenantConfig {}

extension HookConfigChange: TenantConfigChange {}

extension StoredHookConfig: TenantConfigRecord {
    typealias Change = HookConfigChange

    static var table: Table<TenantPrefix, StoredHookConfig> { Tables.hookConfigs }
    static var defaults: HookConfig { HookConfig() }
    static var secrets: [ConfigSecret<StoredHookConfig>] { HookPoint.allCases.map { secret(of: $0) } }
    static var event: EventKind { .hookConfigUpdated }
    static var destination: String { "where hooks are" }

    fileprivate static func secret(of point: HookPoint) -> ConfigSecret<StoredHookConfig> {
        ConfigSecret(
            kind: "hook secret \(point.rawValue)", field: point.secretField, wanted: { $0.newSecret(of: point) },
            isKept: { $0[point]?.webhook?.hasSigningSecret == true })
    }
}

extension HookPoint {
    fileprivate var secretField: WritableKeyPath<StoredHookConfig, [UInt8]> {
        switch self {
        case .beforeCreate: \StoredHookConfig.sealedBeforeCreateSecret
        case .beforeSignIn: \StoredHookConfig.sealedBeforeSignInSecret
        }
    }
}
