public import Base
public import Messages
public import PosternClient

/// A change of a tenant's blocking hooks, for `TenantAdmin.updateHookConfig`.
///
/// Nil leaves a hook as it is; `Hook()` removes it. A hook without a secret keeps the present secret, unless its URL is
/// another.
///
/// ```swift
/// let key = Secret("32 to 256 random bytes, kept as a secret")
/// let hook = Hook(webhook: WebhookConfig(url: "https://acme.example/hook", signingSecret: key))
/// try await tenant.updateHookConfig(HookConfigChange { $0.beforeSignIn = hook })
/// ```
public struct HookConfigChange: Sendable {
    /// The hook that is asked before a first sign-in makes an account.
    public var beforeCreate: Hook?
    /// The hook that is asked before a session begins.
    public var beforeSignIn: Hook?
    /// Lets hooks be in a private network or on the server's machine. Needs a project-admin.
    public var allowPrivateAddresses: Bool?

    /// Creates a change. The closure sets the fields.
    public init(_ fill: (inout HookConfigChange) -> Void = { _ in }) { fill(&self) }

    var fields: MaskedFields<HookConfig> {
        var fields = MaskedFields<HookConfig>()
        fields.setMessage(.beforeCreate, \.beforeCreate, beforeCreate)
        fields.setMessage(.beforeSignIn, \.beforeSignIn, beforeSignIn)
        fields.set(.allowPrivateAddresses, \.allowPrivateAddresses, allowPrivateAddresses)
        return fields
    }
}

// MARK: - Blocking hooks

extension TenantAdmin {
    private var hookConfigs: HookConfigsClient { HookConfigsClient(channel: channel) }

    /// Returns the tenant's blocking hooks, without their secrets.
    public func hookConfig(options: CallOptions = .init()) async throws(Failure) -> HookConfig {
        try await required(hookConfigs.get(HookConfigsGetRequest(tenantID: tenantID), options: options).config)
    }

    /// Changes the tenant's blocking hooks.
    ///
    /// Throws INVALID_HOOK, INVALID_WEBHOOK, and INSUFFICIENT_PERMISSION for private addresses without a project-admin.
    @discardableResult
    public func updateHookConfig(
        _ change: HookConfigChange, options: CallOptions = .init()
    ) async throws(Failure) -> HookConfig {
        let fields = change.fields
        let request = HookConfigsUpdateRequest(tenantID: tenantID, config: fields.message, updateMask: fields.mask)
        return try await required(sendOnce(hookConfigs.update, request, options).config)
    }
}
