public import Base
public import Crypto
public import Messages
public import Signing
import Store
import Tokens

extension Project {
    /// A new signing key; see `TokenSigner.rotate`. A repeated request makes none and is answered as the first was.
    public func rotateSigningKey(
        for use: TokenUse, algorithm: SigningAlgorithm?, publishAhead: Duration, origin: Origin
    ) async throws -> SigningKeyInfo {
        let now = clock.now()
        let record = keyEvent(origin: origin)
        do {
            return try await signer(of: use).rotate(algorithm: algorithm, publishAhead: publishAhead) {
                transaction, kind, keyID in
                let answer = try transaction.once(origin, now: now) {
                    try record(transaction, kind, keyID)
                    return try transaction.newSigningKey(keyID)
                }
                if answer.keyID != keyID { throw RepeatedRotation(key: answer) }
            }
        } catch let repeated as RepeatedRotation {
            return repeated.key
        }
    }
}

extension Project {
    /// Ends a signing key that may be in other hands; see `TokenSigner.revoke`. SIGNING_KEY_NOT_FOUND.
    public func revokeSigningKey(
        _ keyID: Text, validateOnly: Bool, origin: Origin
    ) async throws -> RevokedSigningKey {
        for signer in [signer, cookieSigner] {
            let record = keyEvent(origin: origin)
            if let revoked = try await signer.revoke(keyID, validateOnly: validateOnly, record: record) {
                return revoked
            }
        }
        throw Failure(
            .signingKeyNotFound, "There is no signing key of this id; it may have been retired.")
    }
}

/// An earlier request with the same idempotency key made this one; the new one is dropped with its transaction.
private struct RepeatedRotation: Error {
    let key: SigningKeyInfo
}

extension WriteTransaction {
    /// What is told of a key that this transaction made.
    fileprivate func newSigningKey(_ keyID: Text) throws -> SigningKeyInfo {
        guard let key = try get(SigningTables.keys, TextKey(keyID)) else {
            preconditionFailure("the signing key \(keyID) is told of before it is made")
        }
        return SigningKeyInfo(
            keyID: keyID, algorithm: key.algorithm,
            state: key.signsFromMicros > key.createdAtMicros ? .published : .signing,
            createdAtMicros: key.createdAtMicros, signsFromMicros: key.signsFromMicros,
            tokenUse: key.tokenUse)
    }
}
