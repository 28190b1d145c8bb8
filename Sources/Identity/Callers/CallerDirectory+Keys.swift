public import Base
public import Messages
public import Rules
import Store

// The changes to a key after it was made. `admin` is the caller who makes the change; nil for the server.

extension CallerDirectory {
    /// Changes a key; nil leaves a field as it is. API_KEY_NOT_FOUND, INVALID_DISPLAY_NAME, INVALID_QUOTA,
    /// INVALID_EXPIRY, INSUFFICIENT_PERMISSION, LAST_ADMIN_KEY, API_KEY_REVOKED.
    public func update(
        id: Text, displayName: Text?, quotas: CallerQuotasChange?, restrictions: KeyRestrictions = KeyRestrictions(),
        by admin: Caller? = nil, validateOnly: Bool, origin: Origin
    ) async throws -> ApiKey {
        if let displayName { try Values.checkDisplayName(displayName, limits: resources.limits) }
        try quotas?.check()
        let now = resources.clock.now()
        try restrictions.check(limits: resources.limits, now: now)
        let limits = resources.quotaLimits
        let known = try await otherAdminKeys(than: id)
        let changed: ApiKey = try await resources.store.write { transaction in
            try transaction.answeringRepeat(of: origin, validateOnly: validateOnly, now: now) {
                var (stored, key) = try transaction.reading.storedAPIKey(id, managedBy: admin, now: now)
                let (before, keyBefore) = (stored, key)
                if let displayName { key.displayName = displayName }
                if let quotas {
                    key.quotas = quotas.applied(to: key.quotas)
                    stored.setQuotaOwner(nil, of: &key)
                }
                if let addresses = restrictions.allowedAddresses { key.allowedAddresses = addresses }
                if let expiresAt = restrictions.expiresAtMicros { key.expiresAtMicros = expiresAt }
                if keyBefore.isLastingAdmin, !key.isLastingAdmin {
                    try transaction.reading.requireOtherAdminKey(than: id, known: known)
                }
                // No admin makes a key last longer, or usable from more addresses, than the admin's own key.
                try admin?.checkMayChange(keyBefore, to: key, setsQuotas: quotas != nil, limits: limits)
                try keyBefore.checkNotRevoked()
                if let until = restrictions.previousSecretUntilMicros {
                    try stored.endPreviousSecret(&key, until: until, now: now)
                }
                stored.apiKey = key
                // The key's connections and streams look again at their credential after each change of it.
                if validateOnly || stored == before { return key }
                try transaction.put(Tables.apiKeys, TextKey(id), stored)
                try transaction.appendEvent(
                    .apiKeyUpdated, tenantID: key.logTenantID(changedBy: admin), origin: origin,
                    detail: key.eventDetail(since: keyBefore), now: now)
                return key
            }
        }
        if !validateOnly { adminKeys.note(changed) }
        return changed
    }

    /// Revokes a key: it is refused from the next request on. API_KEY_NOT_FOUND, LAST_ADMIN_KEY.
    public func revoke(
        id: Text, by admin: Caller? = nil, validateOnly: Bool, origin: Origin
    ) async throws -> ApiKey {
        let now = resources.clock.now()
        let known = try await otherAdminKeys(than: id)
        let revoked: ApiKey = try await resources.store.write { transaction in
            // Revoking has no quota of bytes. Without this, a caller could store any number of records, by revoking the
            // same key again and again.
            if !validateOnly, let idempotency = origin.idempotency,
                try transaction.reading.earlier(idempotency) == nil
            {
                let key = try transaction.reading.storedAPIKey(id, managedBy: admin, now: now).key
                if key.revokedAtMicros != 0 { return key }
            }
            return try transaction.answeringRepeat(of: origin, validateOnly: validateOnly, now: now) {
                var (stored, key) = try transaction.reading.storedAPIKey(id, managedBy: admin, now: now)
                guard key.revokedAtMicros == 0 else { return key }
                if key.isLastingAdmin { try transaction.reading.requireOtherAdminKey(than: id, known: known) }
                if validateOnly { return key }
                key.revokedAtMicros = now.microseconds
                stored.apiKey = key
                try transaction.put(Tables.apiKeys, TextKey(id), stored)
                try transaction.appendEvent(
                    .apiKeyRevoked, tenantID: key.logTenantID(changedBy: admin), origin: origin, detail: id, now: now)
                return key
            }
        }
        if !validateOnly { adminKeys.note(revoked) }
        return revoked
    }
}

extension CallerDirectory {
    /// The number of keys that a search looks at between two other jobs of its loop.
    private static let searchedTogether = 1_000

    /// The ids among which `requireOtherAdminKey` looks. If no known key is another lasting project-admin key, all keys
    /// are searched for one. That is done before the write, because all other writes wait for it, and tenants have any
    /// number of keys. In a cluster, a call begins at the journal's end, so the search sees what any node acknowledged.
    private func otherAdminKeys(than id: Text) async throws -> [Text] {
        let known = adminKeys.ids
        let isSettled = try resources.store.read { transaction -> Bool in
            guard try transaction.isLastingAdminKey(id) else { return true }
            return try transaction.hasLastingAdminKey(besides: id, among: known)
        }
        if isSettled { return known }
        var last: Text?
        while true {
            let step = try resources.store.read {
                try $0.lastingAdminKey(besides: id, after: last, limit: Self.searchedTogether)
            }
            if let found = step.found {
                adminKeys.note(found)
                return [found.apiKeyID]
            }
            guard let end = step.last else { return [] }
            last = end
            await Task.yield()
        }
    }
}

extension ReadTransaction {
    /// A key that the administrator may change. API_KEY_NOT_FOUND, also for a key of another tenant, or with a higher
    /// role; the refusals of `requireValid`.
    func storedAPIKey(
        _ id: Text, managedBy admin: Caller?, now: Timestamp
    ) throws -> (stored: StoredApiKey, key: ApiKey) {
        guard let admin else { return try storedAPIKey(id) }
        try requireValid(admin, now: now)
        // The admins of a tenant that is deleted change nothing any more.
        if let own = admin.tenantID { _ = try liveTenant(own) }
        let found = try storedAPIKey(id)
        guard admin.mayManage(found.key) else { throw Failure.apiKeyNotFound }
        return found
    }

    fileprivate func isLastingAdminKey(_ id: Text) throws -> Bool {
        try get(Tables.apiKeys, TextKey(id))?.apiKey?.isLastingAdmin ?? false
    }

    fileprivate func hasLastingAdminKey(besides id: Text, among known: [Text]) throws -> Bool {
        for other in known where other != id {
            if try isLastingAdminKey(other) { return true }
        }
        return false
    }

    /// Looks for a lasting project-admin key among the next `limit` keys. `last`: where to go on; nil at the end.
    fileprivate func lastingAdminKey(
        besides id: Text, after last: Text?, limit: Int
    ) throws -> (found: ApiKey?, last: Text?) {
        var (count, end, found): (Int, Text?, ApiKey?) = (0, nil, nil)
        try scan(Tables.apiKeys, from: last.map { .after(TextKey($0)) } ?? .first, limit: limit) { row in
            count += 1
            if count == limit { end = try row.key.text }
            guard StoredApiKey.isOfProjectAdmin(row.value), let key = try row.record.apiKey else { return true }
            if key.isLastingAdmin, key.apiKeyID != id { found = key }
            return found == nil
        }
        return (found, end)
    }

    /// LAST_ADMIN_KEY if none of the `known` keys is a lasting project-admin key any more, `id` left aside.
    fileprivate func requireOtherAdminKey(than id: Text, known: [Text]) throws {
        guard try hasLastingAdminKey(besides: id, among: known) else {
            throw Failure(
                .lastAdminKey,
                "This is the last project-admin key that is good for ever and from everywhere; make another one first.")
        }
    }
}

extension WriteTransaction {
    /// Adds a tenant's key to the index by which the tenant's keys are found.
    func noteTenant(of key: ApiKey) throws {
        guard let tenantID = key.onlyTenantID else { return }
        try put(Tables.apiKeysOfTenants, TenantTextKey(tenantID, key.apiKeyID), [])
    }
}

extension StoredApiKey {
    /// Whether a record is of a project-admin key. The record is not decoded.
    fileprivate static func isOfProjectAdmin(_ record: UnsafeRawBufferPointer) -> Bool {
        guard let key = firstField(FieldNumber.apiKey, in: record) else { return false }
        // Proof: the numbers of the enumeration are not negative.
        return firstVarint(ApiKey.FieldNumber.role, in: key) == UInt64(Role.projectAdmin.rawValue)
    }
}

extension ApiKey {
    /// Nil: all tenants.
    var onlyTenantID: Text? { if case .tenantID(let tenantID) = scope?.tenants { tenantID } else { nil } }

    /// The tenant whose log has the change: a tenant's admin reads the log of the tenant, so its changes are there.
    func logTenantID(changedBy admin: Caller?) -> Text {
        guard let admin, !admin.has(.projectAdmin) else { return .empty }
        return onlyTenantID ?? .empty
    }
}

extension Failure {
    static let apiKeyNotFound = Failure(.apiKeyNotFound, "There is no API key with this id.")
}
