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

    /// Checks that a new key has no right that its maker does not have: the maker can use the key.
    /// INSUFFICIENT_PERMISSION.
    ///
    /// A project-admin may make any key. Other admins make keys for one tenant only: a key for all tenants has no part
    /// in a tenant's shared rates, and no tenant's limit counts it.
    public func checkMayMake(_ key: ApiKey) throws(Failure) {
        if has(.projectAdmin) { return }
        guard case .tenantID? = key.scope?.tenants else { throw refusal("its scope must be one tenant") }
        try checkRights(of: key)
        guard key.quotas ?? CallerQuotas() == CallerQuotas() else { throw quotasRefusal }
    }

    /// Checks that this administrator may get a new secret of a key, or make the key last longer or usable from more
    /// networks: the key has no right that the administrator lacks, and no quota above the administrator's own.
    /// INSUFFICIENT_PERMISSION. `setsQuotas`: whether the call sets the key's quotas.
    public func checkMayRenew(_ key: ApiKey, setsQuotas: Bool = false, limits: QuotaLimits) throws(Failure) {
        if has(.projectAdmin) { return }
        try checkRights(of: key)
        if setsQuotas { throw quotasRefusal }
        guard !limits.allow(Caller(key), moreThan: self) else {
            throw refusal("its quotas are above those of your credential")
        }
    }

    /// Checks a change of a key's display name, expiry, networks or quotas. INSUFFICIENT_PERMISSION.
    ///
    /// A change that only restricts the key needs no more rights than revoking it, so `checkMayRenew` is not asked.
    public func checkMayChange(
        _ key: ApiKey, to changed: ApiKey, setsQuotas: Bool, limits: QuotaLimits
    ) throws(Failure) {
        if !setsQuotas, changed.restricts(key) { return }
        try checkMayRenew(changed, setsQuotas: setsQuotas, limits: limits)
    }

    /// The end of a JWT or a certificate does not end the right to call, so only an API key's own end and networks
    /// limit the keys that are made with it.
    private func checkRights(of key: ApiKey) throws(Failure) {
        guard has(key.role) else { throw refusal("the role \(key.role.name) is above \(role.name)") }
        if let tenantID, key.scope?.tenants != .tenantID(tenantID) { throw refusal("its scope must be your tenant") }
        guard trustsEndUserIP || !key.trustedEndUserIP else {
            throw refusal("trusted_end_user_ip is not yours to give; a project-admin can, or a key that has it")
        }
        guard exportsPasswordHashes || !key.exportPasswordHashes else {
            throw refusal("export_password_hashes is not yours to give; a project-admin can, or a key that has it")
        }
        guard hasSecret else { return }
        let own = shown
        if let end = own.expiresAt {
            guard key.expiresAtMicros != 0, key.expiresAtMicros <= end.microseconds else {
                throw refusal("it must end with your key at the latest")
            }
        }
        guard own.allowedNetworks.isEmpty || key.isUsableOnly(from: own.allowedNetworks) else {
            throw refusal("its allowed_addresses must be within those of your key")
        }
    }

    private var quotasRefusal: Failure { refusal("quotas are set by a project-admin") }

    private func refusal(_ what: String) -> Failure {
        Failure(
            .insufficientPermission, "A key may do no more than whoever makes it: \(what).",
            metadata: [Failure.Entry("role", role.name)])
    }
}

extension ApiKey {
    /// Whether this key, compared with the key before a change, is usable for no longer and from no other networks.
    /// Nothing else but the display name may differ.
    func restricts(_ before: ApiKey) -> Bool {
        var expected = before
        expected.displayName = displayName
        expected.expiresAtMicros = expiresAtMicros
        expected.allowedAddresses = allowedAddresses
        guard self == expected else { return false }
        let endsByThen =
            before.expiresAtMicros == 0 || (expiresAtMicros != 0 && expiresAtMicros <= before.expiresAtMicros)
        let former = before.allowedAddresses
        let isWithin =
            former.isEmpty || former == allowedAddresses
            || isUsableOnly(from: former.compactMap { IPNetwork($0.string) })
        return endsByThen && isWithin
    }

    /// Whether each of the key's networks is within one of these. False for a key that is usable from everywhere.
    fileprivate func isUsableOnly(from networks: [IPNetwork]) -> Bool {
        let own = allowedAddresses.compactMap { IPNetwork($0.string) }
        guard !own.isEmpty, own.count == allowedAddresses.count else { return false }
        return own.allSatisfy { network in networks.contains { $0.contains(network) } }
    }
}
