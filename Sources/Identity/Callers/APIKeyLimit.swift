import Base
import Messages
import Rules
import Store

// The limit of the keys that a tenant's admins make. Which keys have ended is found out before the write, because all
// other writes wait for it.

extension ReadTransaction {
    /// The ended keys of the tenant that `key` is for, the first to end first, without those that are the owner of the
    /// quota of a key in force. None while the tenant has fewer keys than the limit, or where there is no limit.
    func endedKeys(beside key: ApiKey, by maker: Caller?, limits: Limits, now: Timestamp) throws -> [Text] {
        guard let tenantID = maker?.limitedTenantID(of: key) else { return [] }
        let ids = try keyIDs(of: tenantID, limits: limits)
        guard ids.count >= limits.administration.apiKeysPerTenantMax else { return [] }
        var ended: [(at: Int64, id: Text)] = []
        var quotaOwners: Set<Text> = []
        for id in ids {
            guard let key = try get(Tables.apiKeys, TextKey(id))?.apiKey else { continue }
            if let at = key.endedAt(now: now) { ended.append((at, id)) } else { quotaOwners.insert(key.quotaOwnerID) }
        }
        // The quotas of such a key still bind the keys that are in force.
        ended.removeAll { quotaOwners.contains($0.id) }
        return ended.sorted { ($0.at, $0.id) < ($1.at, $1.id) }.map(\.id)
    }

    /// Project-admins make any number of keys: far above the limit an exact count is not needed.
    fileprivate func keyIDs(of tenantID: Text, limits: Limits) throws -> [Text] {
        var ids: [Text] = []
        let countMax = 10 * limits.administration.apiKeysPerTenantMax
        try scan(Tables.apiKeysOfTenants, prefix: TenantPrefix(tenantID), limit: countMax) { row in
            ids.append(try row.key.text)
            return true
        }
        return ids
    }

    /// When a key ended; nil while it is in force.
    fileprivate func endOfKey(_ id: Text, now: Timestamp) throws -> Int64? {
        try get(Tables.apiKeys, TextKey(id))?.apiKey?.endedAt(now: now)
    }
}

extension WriteTransaction {
    /// TOO_MANY_API_KEYS when as many keys are in force as the limit. The keys that are not among the `ended` count as
    /// in force. The key that ended first is deleted for the new one, so that rows of ended keys do not grow without
    /// bound.
    func makeRoom(
        for key: ApiKey, by maker: Caller?, ended: [Text], limits: Limits, now: Timestamp, validateOnly: Bool
    ) throws {
        guard let tenantID = maker?.limitedTenantID(of: key) else { return }
        let countMax = limits.administration.apiKeysPerTenantMax
        let ids = try Set(reading.keyIDs(of: tenantID, limits: limits))
        guard ids.count >= countMax else { return }
        let ended = ended.filter { ids.contains($0) }
        // A key's end may have been put off since the key was found.
        let oldest = try ended.first { try reading.endOfKey($0, now: now) != nil }
        let liveCount = ids.count - (oldest == nil ? 0 : ended.count)
        guard liveCount < countMax, let oldest else {
            throw Failure(
                .tooManyAPIKeys,
                "The tenant has \(liveCount) API keys in force; revoke one of them, or ask a project-admin.")
        }
        if validateOnly { return }
        try delete(Tables.apiKeys, TextKey(oldest))
        try delete(Tables.apiKeyUses, TextKey(oldest))
        try delete(Tables.apiKeysOfTenants, TenantTextKey(tenantID, oldest))
    }
}

extension Caller {
    /// The tenant whose number of keys is limited when this caller makes `key`; nil if there is no limit.
    fileprivate func limitedTenantID(of key: ApiKey) -> Text? { has(.projectAdmin) ? nil : key.onlyTenantID }
}

extension ApiKey {
    /// When the key was revoked or came to its end; nil while it is in force.
    fileprivate func endedAt(now: Timestamp) -> Int64? {
        if revokedAtMicros != 0 { return revokedAtMicros }
        return expiresAtMicros != 0 && expiresAtMicros <= now.microseconds ? expiresAtMicros : nil
    }
}
