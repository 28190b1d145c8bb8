public import Base
public import Crypto
public import Messages
public import Signing
import Store
import Tokens

/// The signers of the project, one for each use of tokens. Each change of their keys is written to the event log.
public struct SigningKeys: Sendable {
    public let idTokens: TokenSigner
    /// Session cookies have keys and an issuer of their own: neither kind of token is ever taken for the other.
    public let sessionCookies: TokenSigner
    let resources: Resources

    public var all: [TokenSigner] { [idTokens, sessionCookies] }

    /// The signer of a use of tokens; by default that of ID tokens.
    public func signer(of use: TokenUse) -> TokenSigner { use == .sessionCookie ? sessionCookies : idTokens }

    /// At start, publishes the keys that there are, or makes the first ones.
    func start(algorithm: SigningAlgorithm) async throws {
        for signer in all {
            try await signer.start(algorithm: algorithm, record: event(origin: .server))
        }
    }

    /// Makes a new signing key; see `TokenSigner.rotate`. A repeated request makes no key and gets the first answer.
    public func rotate(
        for use: TokenUse, algorithm: SigningAlgorithm?, publishAhead: Duration, origin: Origin
    ) async throws -> SigningKeyInfo {
        let now = resources.clock.now()
        let record = event(origin: origin)
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

    /// Ends a signing key that may be in other hands; see `TokenSigner.revoke`. SIGNING_KEY_NOT_FOUND.
    public func revoke(_ keyID: Text, validateOnly: Bool, origin: Origin) async throws -> RevokedSigningKey {
        for signer in all {
            let record = event(origin: origin)
            if let revoked = try await signer.revoke(keyID, validateOnly: validateOnly, record: record) {
                return revoked
            }
        }
        throw Failure(
            .signingKeyNotFound, "There is no signing key of this id; it may have been retired.")
    }

    /// Deletes, in the sweep, the keys that verify nothing any more. Throws the first error after it has tried all
    /// signers. While a key is damaged, none is deleted: after a change all keys are read again, which would fail.
    func retireExpired() async throws {
        var failure: (any Error)?
        let damaged = resources.damagedTenants
        for signer in all {
            do {
                try await signer.retireExpired(record: event(origin: .server))
            } catch StoreError.corrupt(let table) where table == SigningTables.keys.name.description {
                damaged.passOver(rowOf: table)
            } catch {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
    }

    /// Writes a key's event to the event log, in the transaction of the key's change.
    private func event(origin: Origin) -> TokenSigner.KeyEvent {
        let now = resources.clock.now()
        return { transaction, kind, keyID in
            try transaction.appendEvent(kind, tenantID: .empty, origin: origin, detail: keyID, now: now)
            if kind == .signingKeyRevoked { try transaction.revokeTokens(ofSigningKey: keyID, now: now) }
        }
    }
}

/// An earlier request with the same idempotency key made `key`; the new key is dropped with its transaction.
private struct RepeatedRotation: Error {
    let key: SigningKeyInfo
}

extension WriteTransaction {
    /// The description of a key that this transaction made.
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
