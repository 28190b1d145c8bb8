public import Base
import Crypto
public import Messages
import Rules
public import Store

/// Each tenant's blocking hooks. Nothing is kept in memory: a sign-in reads its tenant's row. Any thread.
public struct HookConfigs: Sendable {
    let resources: Resources
    private let sealing: SealingKey

    init(resources: Resources, sealing: SealingKey) {
        self.resources = resources
        self.sealing = sealing
    }

    /// Changes a tenant's hooks. Refusals: those of `HookConfigChange`; INSUFFICIENT_PERMISSION for private addresses
    /// without a project-admin.
    public func update(
        _ wanted: HookConfig, _ mask: UpdateMask<HookConfig>, tenantID: Text, isProjectAdmin: Bool, validateOnly: Bool,
        origin: Origin
    ) async throws -> HookConfig {
        let change = try HookConfigChange(wanted, mask)
        let now = resources.clock.now()
        let sealed = try HookPoint.allCases.map { point in
            try change.newSecret(of: point).map {
                try sealing.seal($0, context: Self.context(tenantID, point), random: resources.random)
            }
        }
        return try await resources.store.write { transaction in
            _ = try transaction.reading.liveTenant(tenantID)
            return try transaction.answeringRepeat(of: origin, validateOnly: validateOnly, now: now) {
                var stored = try transaction.get(Tables.hookConfigs, TenantPrefix(tenantID)) ?? StoredHookConfig()
                let old = stored.config ?? HookConfig()
                var new = old
                try change.apply(to: &new)
                if new.reachesElsewhere(than: old), !isProjectAdmin {
                    throw Failure.needsProjectAdmin(
                        "allow_private_addresses, and where hooks are while it is set, are set by a project-admin.")
                }
                new.updatedAtMicros = max(now.microseconds, old.updatedAtMicros &+ 1)
                new.revision &+= 1
                if validateOnly { return new }
                stored.config = new
                for (point, secret) in zip(HookPoint.allCases, sealed) {
                    if let secret { stored[secretOf: point] = secret }
                    if new[point]?.webhook?.hasSigningSecret != true { stored[secretOf: point] = [] }
                }
                try transaction.put(Tables.hookConfigs, TenantPrefix(tenantID), stored)
                try transaction.appendEvent(
                    .hookConfigUpdated, tenantID: tenantID, origin: origin, detail: mask.names, now: now)
                return new
            }
        }
    }

    /// The hook that is asked at this point; nil for none.
    func hook(_ point: HookPoint, tenantID: Text) throws -> ConfiguredHook? {
        let found = try resources.store.read { try $0.get(Tables.hookConfigs, TenantPrefix(tenantID)) }
        guard let found, let config = found.config, let hook = config[point], hook.webhook?.url.isEmpty == false else {
            return nil
        }
        let secret = try? sealing.open(found[secretOf: point], context: Self.context(tenantID, point))
        return ConfiguredHook(
            tenantID: tenantID, point: point, hook: hook, secret: secret ?? .empty,
            allowsPrivateAddresses: config.allowPrivateAddresses)
    }

    private static func context(_ tenantID: Text, _ point: HookPoint) -> [UInt8] {
        [UInt8]("hook secret \(point.rawValue)".utf8) + [0] + tenantID.bytes
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

extension StoredHookConfig {
    fileprivate subscript(secretOf point: HookPoint) -> [UInt8] {
        get { point == .beforeCreate ? sealedBeforeCreateSecret : sealedBeforeSignInSecret }
        set {
            switch point {
            case .beforeCreate: sealedBeforeCreateSecret = newValue
            case .beforeSignIn: sealedBeforeSignInSecret = newValue
            }
        }
    }
}
