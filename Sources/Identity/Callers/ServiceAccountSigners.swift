import Base
import Crypto
import Messages
import Store
import Synchronization
import Tokens

/// Finds whose key signed a service account's JWT. The store is asked every time, so that disabling, revoking and
/// deleting take effect at once; only the parsed keys are cached, because parsing an RSA key takes longer than all the
/// rest.
public final class ServiceAccountSigners: Sendable {
    /// The signer of a JWT: the account and the key, both valid now.
    struct Signer {
        let account: ServiceAccount
        let key: ServiceAccountKey

        var expiresAt: Timestamp { key.expiresAt }
    }

    /// Parsed keys by their bytes, so that no entry can become outdated.
    private let parsedKeys = Mutex<[[UInt8]: VerificationKey]>([:])
    private static let parsedKeysMax = 1_024

    public init() {}

    /// Nil unless a live, enabled account has this very email, and the signature is of a key of this account that is
    /// not revoked or expired: of the key that the JWT names, or of any key when it names none.
    func signer(
        of jwt: ServiceAccountJWT, now: Timestamp, in transaction: borrowing ReadTransaction
    ) throws -> Signer? {
        let accountID = Self.accountID(ofEmail: jwt.email)
        guard let account = try transaction.liveServiceAccount(accountID), account.email == jwt.email,
            !account.disabled
        else { return nil }
        var candidates: [StoredServiceAccountKey]
        if let keyID = jwt.keyID {
            let named = try transaction.get(Tables.serviceAccountKeys, ServiceAccountKeyKey(accountID, keyID))
            candidates = named.map { [$0] } ?? []
        } else {
            candidates = try transaction.storedServiceAccountKeys(of: accountID)
        }
        candidates.removeAll { $0.key?.isLive(at: now) != true }
        for candidate in candidates {
            guard let key = candidate.key, jwt.isSigned(by: try parsed(candidate.publicKey)) else { continue }
            return Signer(account: account, key: key)
        }
        return nil
    }

    static func accountID(ofEmail email: Text) -> Text {
        Text(unchecked: Array(email.bytes.prefix { $0 != UInt8(ascii: "@") }))
    }

    private func parsed(_ spki: [UInt8]) throws -> VerificationKey {
        if let known = parsedKeys.withLock({ $0[spki] }) { return known }
        // The key was checked thoroughly when it was uploaded; this may be an event loop.
        let key = try VerificationKey(spki: spki, check: .quick)
        parsedKeys.withLock { keys in
            if keys.count >= Self.parsedKeysMax { keys.removeAll(keepingCapacity: true) }
            keys[spki] = key
        }
        return key
    }
}
