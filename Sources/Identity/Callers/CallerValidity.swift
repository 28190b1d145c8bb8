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
        switch caller.credential {
        case .both(let shown, let mapped):
            try requireValid(shown, from: peer, now: now)
            try requireValid(mapped, now: now)
        case .apiKey(let secretHash):
            guard let stored = try get(Tables.apiKeys, TextKey(caller.id)),
                let present = Caller(stored, secretHash: secretHash)
            else { throw Failure.callerUnauthenticated }
            try present.checkLife(now: now)
            if let peer { try present.checkAddress(peer) }
        case .serviceAccount(let keyID): try requireValidAccount(of: caller, keyID: keyID, now: now)
        case .certificate(let mappingID): try requireMapped(caller, mappingID: mappingID, now: now)
        }
    }

    /// Checks that the service account and the key of a caller's JWT are still valid, and the JWT itself.
    private func requireValidAccount(of caller: Caller, keyID: Text, now: Timestamp) throws {
        let accountID = ServiceAccountSigners.accountID(ofEmail: caller.id)
        guard let account = try liveServiceAccount(accountID), caller.isStill(account),
            let key = try get(Tables.serviceAccountKeys, ServiceAccountKeyKey(accountID, keyID))?.key,
            key.isLive(at: now), caller.expiresAt.map({ now < $0 }) ?? false
        else { throw Failure.callerUnauthenticated }
    }
}
