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
        let (record, signer) = (event(origin: origin), self.signer(of: use))
        do {
            return try await signer.rotate(algorithm: algorithm, publishAhead: publishAhead) {
                transaction, kind, keyID in
                let answer = try transaction.answeringRepeat(of: origin, now: now) {
                    try record(transaction, kind, keyID)
                    return try transaction.newSigningKey(keyID, signer.rotation)
                }
                if answer.keyID != keyID { throw RepeatedRotation(key: answer) }
            }
        } catch let repeated as RepeatedRotation {
            return repeated.key
        }
    }

    /// Checks whether `rotate` would have room for a key. TOO_MANY_SIGNING_KEYS.
    public func checkRoomForKey(of use: TokenUse) throws { try signer(of: use).checkRoomForKey() }

    /// Ends a signing key that may be in other hands; see `TokenSigner.revoke`. SIGNING_KEY_NOT_FOUND.
    public func revoke(
        _ keyID: Text, validateOnly: Bool, origin: Origin
    ) async throws -> ProjectRevokeSigningKeyResponse {
        try await resources.answeringRepeat(ofSeveralWrites: origin, validateOnly: validateOnly) {
            for signer in all {
                let record = event(origin: origin)
                if let revoked = try await signer.revoke(keyID, validateOnly: validateOnly, record: record) {
                    return ProjectRevokeSigningKeyResponse(key: revoked.key, successor: revoked.successor)
                }
            }
            throw Failure(
                .signingKeyNotFound, "There is no signing key of this id; it may have been retired.")
        }
    }

    /// Whether the next key of a signer is to be made now, as far as the published keys tell.
    var isNextKeyDue: Bool { all.contains { $0.isNextKeyDue } }

    /// Makes, in the sweep, the next keys of the signers for which it is time; see `TokenSigner.rotateIfDue`.
    func rotateDue() async throws {
        try await forEachSigner { signer in
            guard let key = try await signer.rotateIfDue(record: event(origin: .server)) else { return }
            resources.log.notice(
                "a new signing key is published and will take over by itself",
                [
                    "key": .text(key.keyID.string),
                    "use": .text(key.tokenUse == .sessionCookie ? "session cookies" : "ID tokens"),
                    "signs_from_micros": .integer(key.signsFromMicros),
                ])
        }
    }

    /// Deletes, in the sweep, the keys that verify nothing any more.
    func retireExpired() async throws {
        try await forEachSigner { try await $0.retireExpired(record: event(origin: .server)) }
    }

    /// Throws the first error after it has tried all signers. While a key is damaged, none is made or deleted: after a
    /// change all keys are read again, which would fail.
    private func forEachSigner(_ change: (TokenSigner) async throws -> Void) async throws {
        var failure: (any Error)?
        let damaged = resources.damagedRecords
        for signer in all {
            do {
                try await change(signer)
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
    fileprivate func newSigningKey(_ keyID: Text, _ rotation: SigningKeyRotation) throws -> SigningKeyInfo {
        guard let key = try get(SigningTables.keys, TextKey(keyID)) else {
            preconditionFailure("the signing key \(keyID) is told of before it is made")
        }
        let (createdAt, signsFrom) = (
            Timestamp(microseconds: key.createdAtMicros), Timestamp(microseconds: key.signsFromMicros)
        )
        let nextKeyAt = rotation.nextKeyAt(createdAt: createdAt, signsFrom: signsFrom, at: createdAt)
        return SigningKeyInfo(
            keyID: keyID, algorithm: key.algorithm, state: signsFrom > createdAt ? .published : .signing,
            createdAtMicros: key.createdAtMicros, signsFromMicros: key.signsFromMicros, tokenUse: key.tokenUse,
            rotatesAtMicros: nextKeyAt?.microseconds ?? 0)
    }
}
