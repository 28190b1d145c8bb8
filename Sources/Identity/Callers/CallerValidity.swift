import Base
import Messages
import Rules
import Store

extension ReadTransaction {
    /// Checks that a caller's credential is unchanged since the caller was found: CALLER_UNAUTHENTICATED if it is
    /// revoked, disabled, expired or deleted, or its rights have changed; API_KEY_EXPIRED, ADDRESS_NOT_ALLOWED.
    /// `peer`: the address of the connection, where it is known.
    ///
    /// Streams make this check again and again. So does each change that makes a credential for callers or gives one
    /// other rights, in its own transaction: a thief of a credential must not make another one after it was revoked.
    func requireValid(_ caller: Caller, from peer: Text? = nil, now: Timestamp) throws {
        if let both = caller.both {
            try requireValid(both.shown, from: peer, now: now)
            return try requireValid(both.mapped, now: now)
        }
        if caller.certificateMappingID != nil { return try checkStillMapped(caller, now: now) }
        guard let stored = try get(Tables.apiKeys, TextKey(caller.id)) else {
            return try requireValidAccount(of: caller, now: now)
        }
        guard let present = Caller(stored, secretHash: caller.secretHash) else { throw Failure.callerUnauthenticated }
        try present.checkLife(now: now)
        if let peer { try present.checkAddress(peer) }
    }

    /// Checks that the service account and the key of a caller's JWT are still valid, and the JWT itself.
    private func requireValidAccount(of caller: Caller, now: Timestamp) throws {
        let accountID = ServiceAccountSigners.accountID(ofEmail: caller.id)
        guard let account = try liveServiceAccount(accountID), caller.isStill(account), let keyID = caller.keyID,
            let key = try get(Tables.serviceAccountKeys, ServiceAccountKeyKey(accountID, keyID))?.key,
            key.isLive(at: now), caller.expiresAt.map({ now < $0 }) ?? false
        else { throw Failure.callerUnauthenticated }
    }
}
