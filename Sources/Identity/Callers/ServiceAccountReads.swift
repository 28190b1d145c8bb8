public import Base
public import Messages
import Rules
public import Store

extension ReadTransaction {
    /// An account that is not deleted, and whose tenant is not; SERVICE_ACCOUNT_NOT_FOUND.
    public func serviceAccount(_ id: Text) throws -> ServiceAccount {
        guard let account = try liveServiceAccount(id), try !isOfDeletedTenant(account.scope) else {
            throw Failure.serviceAccountNotFound
        }
        return account
    }

    /// All keys of an account in the order of their ids, revoked and expired ones too.
    public func serviceAccountKeys(of accountID: Text) throws -> [ServiceAccountKey] {
        try storedServiceAccountKeys(of: accountID).map { $0.key ?? ServiceAccountKey() }
    }

    /// Nil for an id that is malformed, was never given to an account, or was deleted.
    func liveServiceAccount(_ id: Text) throws -> ServiceAccount? {
        guard Values.isPlainID(id), let stored = try get(Tables.serviceAccounts, TextKey(id)), !stored.deleted else {
            return nil
        }
        return stored.serviceAccount
    }

    func storedServiceAccountKeys(of accountID: Text) throws -> [StoredServiceAccountKey] {
        var keys: [StoredServiceAccountKey] = []
        try scan(Tables.serviceAccountKeys, prefix: ServiceAccountKeyKey(accountID)) { row in
            keys.append(try row.record)
            return true
        }
        return keys
    }
}

extension ServiceAccountKey {
    /// Neither revoked nor expired.
    func isLive(at now: Timestamp) -> Bool { revokedAtMicros == 0 && now < expiresAt }

    var expiresAt: Timestamp {
        expiresAtMicros == 0 ? Timestamp(microseconds: .max) : Timestamp(microseconds: expiresAtMicros)
    }
}

extension Failure {
    static let serviceAccountNotFound = Failure(
        .serviceAccountNotFound, "There is no service account with this id.")
    static let builtInServiceAccount = Failure(
        .builtInServiceAccount,
        "This is the project's own service account: it cannot be changed, and its key never leaves the server.")
}
