public import Base
public import Messages

// The rights of an administrator over API keys. Pure.

extension Caller {
    /// Whether the key is one that this administrator sees, changes and revokes: of its tenant, with no higher role.
    public func mayManage(_ key: ApiKey) -> Bool {
        if has(.projectAdmin) { return true }
        guard has(key.role) else { return false }
        guard let tenantID else { return true }
        return key.scope?.tenants == .tenantID(tenantID)
    }

    /// Checks that the key has no right that its maker does not have: a caller who makes a key, or a new secret of it,
    /// can use it. INSUFFICIENT_PERMISSION.
    ///
    /// A project-admin may make any key. The end of a JWT or a certificate does not end the right to call, so only an
    /// API key's own end and networks limit the keys that are made with it. `setsQuotas`: whether the call sets the
    /// key's quotas; nil for a new key, whose quotas are set if it has any.
    public func checkMayMake(_ key: ApiKey, setsQuotas: Bool? = nil) throws(Failure) {
        if has(.projectAdmin) { return }
        func refuse(_ what: String) -> Failure {
            Failure(
                .insufficientPermission, "A key may do no more than whoever makes it: \(what).",
                metadata: [Failure.Entry("role", role.name)])
        }
        guard has(key.role) else { throw refuse("the role \(key.role.name) is above \(role.name)") }
        if let tenantID, key.scope?.tenants != .tenantID(tenantID) { throw refuse("its scope must be your tenant") }
        guard trustsEndUserIP || !key.trustedEndUserIP else {
            throw refuse("trusted_end_user_ip is not yours to give")
        }
        guard exportsPasswordHashes || !key.exportPasswordHashes else {
            throw refuse("export_password_hashes is not yours to give")
        }
        guard !(setsQuotas ?? (key.quotas ?? CallerQuotas() != CallerQuotas())) else {
            throw refuse("quotas are set by a project-admin")
        }
        guard hasSecret else { return }
        let own = shown
        if let end = own.expiresAt {
            guard key.expiresAtMicros != 0, key.expiresAtMicros <= end.microseconds else {
                throw refuse("it must end with your key at the latest")
            }
        }
        guard !own.allowedNetworks.isEmpty else { return }
        let wanted = key.allowedAddresses.compactMap { IPNetwork($0.string) }
        let areWithin = wanted.allSatisfy { network in own.allowedNetworks.contains { $0.contains(network) } }
        guard !wanted.isEmpty, wanted.count == key.allowedAddresses.count, areWithin else {
            throw refuse("its allowed_addresses must be within those of your key")
        }
    }
}
