public import Base
import Messages
import Signing
public import Store

/// The keys that a restore puts in force again: those of the backup that the present store refuses, because they were
/// revoked or deleted since.
///
/// A signing key counts only if it was revoked: one that was replaced signs nothing for long.
public struct RevivedKeys: Sendable {
    /// The keys of one kind, by their ids: `API key`, `key of a service account`, `signing key`.
    public private(set) var kinds: [(kind: Text, ids: [Text])] = []

    /// The keys that are in force at `now` in the backup's store, and not in the present one.
    public init(
        of backup: borrowing ReadTransaction, refusedIn present: borrowing ReadTransaction, now: Timestamp
    ) throws {
        var ids: [Text] = []
        try backup.scan(Tables.apiKeys) { row in
            guard let key = try row.record.apiKey, key.isInForce(at: now) else { return true }
            let other = try present.get(Tables.apiKeys, row.key)?.apiKey
            if other?.isInForce(at: now) != true { ids.append(key.apiKeyID) }
            return true
        }
        add("API key", ids)
        ids = []
        try backup.scan(Tables.serviceAccountKeys) { row in
            let id = try row.key
            guard try backup.accepts(id, at: now), try !present.accepts(id, at: now) else { return true }
            ids.append(Text("\(id.accountID)/\(id.keyID)"))
            return true
        }
        add("key of a service account", ids)
        ids = []
        try backup.scan(SigningTables.keys) { row in
            guard try row.record.revokedAtMicros == 0, let other = try present.get(SigningTables.keys, row.key),
                other.revokedAtMicros != 0
            else { return true }
            ids.append(other.keyID)
            return true
        }
        add("signing key", ids)
    }

    private mutating func add(_ kind: Text, _ ids: [Text]) {
        if !ids.isEmpty { kinds.append((kind: kind, ids: ids)) }
    }
}

extension ApiKey {
    fileprivate func isInForce(at now: Timestamp) -> Bool {
        revokedAtMicros == 0 && (expiresAtMicros == 0 || now < Timestamp(microseconds: expiresAtMicros))
    }
}

extension ReadTransaction {
    fileprivate func accepts(_ id: ServiceAccountKeyKey, at now: Timestamp) throws -> Bool {
        guard try liveServiceAccount(id.accountID) != nil,
            let key = try get(Tables.serviceAccountKeys, id)?.key
        else { return false }
        return key.isLive(at: now)
    }
}
