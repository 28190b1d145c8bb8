public import Base
public import Messages
public import Rules
import Store

// The changes to a key after it was made. `admin` is the caller who makes the change; nil for the server.

extension CallerDirectory {
    /// Changes a key; nil leaves a field as it is. API_KEY_NOT_FOUND, INVALID_DISPLAY_NAME, INVALID_QUOTA,
    /// INVALID_EXPIRY, INSUFFICIENT_PERMISSION, LAST_ADMIN_KEY.
    public func update(
        id: Text, displayName: Text?, quotas: CallerQuotas?, use: KeyUse = KeyUse(), by admin: Caller? = nil,
        validateOnly: Bool, origin: Origin
    ) async throws -> ApiKey {
        if let displayName { try Values.checkDisplayName(displayName, limits: resources.limits) }
        try quotas?.check()
        let now = resources.clock.now()
        try use.check(limits: resources.limits, now: now)
        let known = adminKeys.ids
        let changed: ApiKey = try await resources.store.write { transaction in
            try transaction.once(validateOnly ? .server : origin, now: now) {
                var (stored, key) = try transaction.reading.storedAPIKey(id, managedBy: admin)
                let before = stored
                if let displayName { key.displayName = displayName }
                if let quotas { key.quotas = quotas }
                let wasLasting = key.isLastingAdmin
                if let addresses = use.allowedAddresses { key.allowedAddresses = addresses }
                if let expiresAt = use.expiresAtMicros { key.expiresAtMicros = expiresAt }
                if wasLasting, !key.isLastingAdmin {
                    try transaction.reading.requireOtherAdminKey(than: id, known: known)
                }
                // No admin makes a key last longer, or usable from more addresses, than the admin's own key.
                if quotas != nil || use.allowedAddresses != nil || use.expiresAtMicros != nil {
                    try admin?.checkMayMake(key, setsQuotas: quotas != nil)
                }
                if let until = use.previousSecretUntilMicros {
                    try stored.endPreviousSecret(&key, until: until, now: now)
                }
                stored.apiKey = key
                // The key's connections and streams look again at their credential after each change of it.
                if validateOnly || stored == before { return key }
                try transaction.put(Tables.apiKeys, TextKey(id), stored)
                try transaction.appendEvent(
                    .apiKeyUpdated, tenantID: key.logTenantID(changedBy: admin), origin: origin, detail: id, now: now)
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
        let known = adminKeys.ids
        let revoked: ApiKey = try await resources.store.write { transaction in
            try transaction.once(validateOnly ? .server : origin, now: now) {
                var (stored, key) = try transaction.reading.storedAPIKey(id, managedBy: admin)
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
    /// Adds the keys that were made before there was an index of the keys of each tenant, and notes project-admin keys.
    func indexOldKeys() async throws {
        let missing: [ApiKey] = try resources.store.read { transaction in
            let all = try transaction.apiKeys(after: nil, limit: .max)
            for key in all where key.isLastingAdmin { adminKeys.note(key) }
            return try all.filter { key in
                guard let tenantID = key.onlyTenantID, try transaction.liveTenantExists(tenantID) else { return false }
                return try !transaction.exists(Tables.apiKeysOfTenants, TenantTextKey(tenantID, key.apiKeyID))
            }
        }
        guard !missing.isEmpty else { return }
        try await resources.store.write { transaction in
            for key in missing where try transaction.exists(Tables.apiKeys, TextKey(key.apiKeyID)) {
                try transaction.noteTenant(of: key)
            }
        }
    }
}

extension ReadTransaction {
    /// False for a deleted tenant, whose rows of the index are gone with it.
    fileprivate func liveTenantExists(_ id: Text) throws -> Bool {
        if id.isEmpty { return true }
        return try get(Tables.tenants, TenantPrefix(id))?.deleted == false
    }

    /// A key that the administrator may change. API_KEY_NOT_FOUND, also for a key of another tenant, or with a higher
    /// role.
    func storedAPIKey(_ id: Text, managedBy admin: Caller?) throws -> (stored: StoredApiKey, key: ApiKey) {
        let found = try storedAPIKey(id)
        guard let admin else { return found }
        guard admin.mayManage(found.key) else { throw Failure.apiKeyNotFound }
        // The admins of a tenant that is deleted change nothing any more.
        if let own = admin.tenantID { _ = try liveTenant(own) }
        return found
    }

    /// LAST_ADMIN_KEY. The `known` keys are looked at first, because tenants have any number of keys, and all writes
    /// wait for this one.
    fileprivate func requireOtherAdminKey(than id: Text, known: [Text]) throws {
        for other in known where other != id {
            if try get(Tables.apiKeys, TextKey(other))?.apiKey?.isLastingAdmin == true { return }
        }
        var isFound = false
        try scan(Tables.apiKeys) { row in
            guard StoredApiKey.isOfProjectAdmin(row.value), let key = try row.record.apiKey else { return true }
            isFound = key.isLastingAdmin && key.apiKeyID != id
            return !isFound
        }
        guard isFound else {
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

    /// Limits the keys that a tenant's admins make. TOO_MANY_API_KEYS when as many are in force as the limit. The
    /// oldest ended key is deleted for the new one, so that rows of ended keys do not grow without bound.
    func makeRoom(
        for key: ApiKey, by maker: Caller?, limits: Limits, now: Timestamp, validateOnly: Bool
    ) throws {
        guard let maker, !maker.has(.projectAdmin), let tenantID = key.onlyTenantID else { return }
        let countMax = limits.administration.apiKeysPerTenantMax
        var ids: [Text] = []
        // Project-admins make any number of keys: far above the limit an exact count is not needed.
        try reading.scan(Tables.apiKeysOfTenants, prefix: TenantPrefix(tenantID), limit: 10 * countMax) { row in
            ids.append(try row.key.text)
            return true
        }
        var liveCount = 0
        var oldest: (id: Text, endedAt: Int64)?
        for id in ids {
            guard let endedAt = try get(Tables.apiKeys, TextKey(id))?.apiKey?.endedAt(now: now) else {
                liveCount += 1
                continue
            }
            if endedAt < oldest?.endedAt ?? .max { oldest = (id, endedAt) }
        }
        guard liveCount < countMax else {
            throw Failure(
                .tooManyAPIKeys,
                "The tenant has \(liveCount) API keys in force; revoke one of them, or ask a project-admin.")
        }
        guard ids.count >= countMax, let oldest, !validateOnly else { return }
        try delete(Tables.apiKeys, TextKey(oldest.id))
        try delete(Tables.apiKeyUses, TextKey(oldest.id))
        try delete(Tables.apiKeysOfTenants, TenantTextKey(tenantID, oldest.id))
    }
}

extension StoredApiKey {
    /// Tells it without decoding the record.
    fileprivate static func isOfProjectAdmin(_ record: UnsafeRawBufferPointer) -> Bool {
        guard let key = firstField(FieldNumber.apiKey, in: record) else { return false }
        var fields = FieldReader(key)
        while let field = try? fields.next() {
            if field.number == ApiKey.FieldNumber.role, case .varint(let role) = field.value {
                // Proof: the numbers of the enumeration are not negative.
                return role == UInt64(Role.projectAdmin.rawValue)
            }
        }
        return false
    }
}

extension ApiKey {
    /// Nil: all tenants.
    var onlyTenantID: Text? { if case .tenantID(let tenantID) = scope?.tenants { tenantID } else { nil } }

    /// When the key was revoked or came to its end; nil while it is in force.
    fileprivate func endedAt(now: Timestamp) -> Int64? {
        if revokedAtMicros != 0 { return revokedAtMicros }
        return expiresAtMicros != 0 && expiresAtMicros <= now.microseconds ? expiresAtMicros : nil
    }

    /// The tenant whose log has the change: a tenant's admin reads the log of the tenant, so its changes are there.
    func logTenantID(changedBy admin: Caller?) -> Text {
        guard let admin, !admin.has(.projectAdmin) else { return .empty }
        return onlyTenantID ?? .empty
    }
}

extension Failure {
    static let apiKeyNotFound = Failure(.apiKeyNotFound, "There is no API key with this id.")
}
