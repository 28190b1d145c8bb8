public import Base
public import Crypto
public import Messages
import Reactor
import Store
import Tokens

// Making, revoking and retiring keys. The fate of the existing keys is decided inside the transaction, over the
// committed state, because another node may have rotated.

/// The result of revoking a key.
public struct RevokedSigningKey: Sendable {
    public let key: SigningKeyInfo
    /// The key that took its place; nil if none was needed.
    public let successor: SigningKeyInfo?
}

extension TokenSigner {
    /// Makes a new key, which signs after `publishAhead`. The present key then still verifies for one token's lifetime.
    /// TOO_MANY_SIGNING_KEYS.
    public func rotate(
        algorithm: SigningAlgorithm?, publishAhead: Duration, record: @escaping KeyEvent
    ) async throws -> SigningKeyInfo {
        await takeTurn()
        defer { passTurn() }
        let now = clock.now()
        let wanted = algorithm ?? published.current.signingEntry(at: now)?.publicKey.algorithm ?? .rs256
        let made = try await newKey(wanted)
        let latest = latestIssuedAt
        try await store.write { [self] transaction in
            try add(made, signsFrom: now + publishAhead, latestIssued: latest, now: now, in: transaction)
            try record(transaction, .signingKeyCreated, made.id)
            // Only now: `record` gives a repeated request its first answer.
            guard try transaction.reading.signingKeys(for: use).count <= KeySet.countMax else {
                throw Failure.tooManySigningKeys
            }
        }
        return try publishedInfo(of: made.id)
    }

    /// Makes the next key, of the newest key's algorithm, if `rotation` says that it is time. Nil if it is not, or if
    /// another node or an admin was faster.
    public func rotateIfDue(record: @escaping KeyEvent) async throws -> SigningKeyInfo? {
        await takeTurn()
        defer { passTurn() }
        let (use, rotation, clock) = (use, rotation, clock)
        guard let newest = try store.read({ try $0.keyToSucceed(for: use, rotation, at: clock.now()) }) else {
            return nil
        }
        let newestID = newest.keyID
        let made = try await newKey(SigningAlgorithm(newest.algorithm) ?? .rs256)
        let latest = latestIssuedAt
        let isMade = try await store.write { [self] transaction -> Bool in
            // The time of this run, because it is compared with what another node may just have written.
            let now = clock.now()
            let present = try transaction.reading.keyToSucceed(for: use, rotation, at: now)
            guard present?.keyID == newestID else { return false }
            try add(made, signsFrom: now + rotation.publishAhead, latestIssued: latest, now: now, in: transaction)
            try record(transaction, .signingKeyCreated, made.id)
            return true
        }
        return isMade ? list().first(where: { $0.keyID == made.id }) : nil
    }

    /// Checks whether there is room for the key that `rotate` would make. TOO_MANY_SIGNING_KEYS.
    public nonisolated func checkRoomForKey() throws {
        guard try store.read({ try $0.signingKeys(for: use).count }) < KeySet.countMax else {
            throw Failure.tooManySigningKeys
        }
    }

    /// Makes the first key of a store that has none, unless another node has made it meanwhile.
    func makeFirst(_ algorithm: SigningAlgorithm, record: @escaping KeyEvent) async throws {
        await takeTurn()
        defer { passTurn() }
        let now = clock.now()
        let made = try await newKey(algorithm)
        let latest = latestIssuedAt
        try await store.write { [self] transaction in
            guard try transaction.reading.signingKeys(for: use).isEmpty else { return }
            try add(made, signsFrom: now, latestIssued: latest, now: now, in: transaction)
            try record(transaction, .signingKeyCreated, made.id)
        }
    }

    /// Revokes a key whose private part somebody else may have: it verifies nothing from now on, and its private part
    /// is deleted here. If it signs, it is replaced at once. If it waits for its time, it is replaced by a key that
    /// waits as long. A key that was revoked before stays as it is. Nil if there is no such key of this use.
    public func revoke(
        _ id: Text, validateOnly: Bool, record: @escaping KeyEvent
    ) async throws -> RevokedSigningKey? {
        await takeTurn()
        defer { passTurn() }
        guard let stored = try store.read({ try $0.allSigningKeys(for: use).first { $0.keyID == id } }) else {
            return nil
        }
        if stored.revokedAtMicros != 0 || validateOnly {
            return RevokedSigningKey(key: SigningKeyInfo(revoked: stored, use: use), successor: nil)
        }
        let now = clock.now()
        let spare = try await newKey(SigningAlgorithm(stored.algorithm) ?? .rs256)
        let (latest, hasSigned) = (latestIssuedAt, newestSignedSequence)
        let hasSuccessor = try await store.write { [self] transaction -> Bool in
            let keys = try transaction.reading.signingKeys(for: use)
            // Somebody else was faster, and has revoked or retired it.
            guard var leaked = keys.first(where: { $0.stored.keyID == id }) else { return false }
            let signing = SigningKeyTimes.signing(in: keys, at: now, hasSigned: hasSigned, \.times)
            let signs = signing?.times == leaked.times
            leaked.stored.sealedPrivateKey = []
            leaked.stored.revokedAtMicros = max(1, now.microseconds)
            leaked.stored.retiresAtMicros = leaked.stored.revokedAtMicros
            try transaction.put(SigningTables.keys, TextKey(id), leaked.stored)
            try record(transaction, .signingKeyRevoked, id)
            guard signs || leaked.times.retiresAt == nil else {
                try extendRetirements(latestIssued: latest, now: now, in: transaction)
                return false
            }
            try add(
                spare, signsFrom: signs ? now : leaked.times.signsFrom, latestIssued: latest, now: now, in: transaction)
            try record(transaction, .signingKeyCreated, spare.id)
            return true
        }
        guard let revoked = try store.read({ try $0.revokedSigningKeys(for: use).first { $0.keyID == id } }) else {
            return nil
        }
        guard hasSuccessor else { return RevokedSigningKey(key: revoked, successor: nil) }
        return RevokedSigningKey(key: revoked, successor: try publishedInfo(of: spare.id))
    }

    /// Deletes keys that verify nothing any more. Called from time to time.
    public func retireExpired(record: @escaping KeyEvent) async throws {
        await takeTurn()
        defer { passTurn() }
        let now = clock.now()
        let use = use
        guard try store.read({ try $0.signingKeysOver(for: use, at: now).isEmpty }) == false else { return }
        try await store.write { transaction in
            for key in try transaction.reading.signingKeysOver(for: use, at: now) {
                try transaction.delete(SigningTables.keys, TextKey(key.keyID))
                if key.revokedAtMicros == 0 { try record(transaction, .signingKeyRetired, key.keyID) }
            }
        }
    }

    private struct NewKey: Sendable {
        let id: Text
        let algorithm: SigningAlgorithm
        let sealed: [UInt8]
    }

    private func newKey(_ algorithm: SigningAlgorithm) async throws -> NewKey {
        let deadline = Instant.now.advanced(by: .seconds(30))
        let key = try await pool.run(tenant: WorkerPool.ownWork, deadline: deadline) { SigningKey.generate(algorithm) }
        let id = key.publicKey.keyID
        return NewKey(
            id: id, algorithm: algorithm, sealed: try sealing.seal(key.exportDER(), context: id.bytes, random: random))
    }

    /// Adds a key as the newest one, and sets the time at which the earlier key retires.
    private nonisolated func add(
        _ key: NewKey, signsFrom: Timestamp, latestIssued: Timestamp, now: Timestamp,
        in transaction: borrowing WriteTransaction
    ) throws {
        for var older in try transaction.reading.signingKeys(for: use) where older.times.retiresAt == nil {
            let retiresAt = older.times.retirement(
                bySuccessorFrom: signsFrom, lastIssuedAt: latestIssued, lifetime: lifetime)
            older.stored.retiresAtMicros = retiresAt.microseconds
            try transaction.put(SigningTables.keys, TextKey(older.stored.keyID), older.stored)
        }
        let stored = StoredSigningKey(
            keyID: key.id, algorithm: Text(key.algorithm.rawValue), sealedPrivateKey: key.sealed,
            createdAtMicros: now.microseconds, signsFromMicros: signsFrom.microseconds, tokenUse: use,
            sequence: try transaction.reading.nextSigningKeySequence())
        try transaction.put(SigningTables.keys, TextKey(key.id), stored)
    }

    /// A key that stopped signing stays published for a token's lifetime.
    private nonisolated var lifetime: Duration {
        use == .sessionCookie ? Self.cookieLifetimeMax : Self.tokenLifetime
    }

    /// Lets keys verify for longer whose successor was revoked while it waited for its time: they sign until the next
    /// key that waits takes over.
    private nonisolated func extendRetirements(
        latestIssued: Timestamp, now: Timestamp, in transaction: borrowing WriteTransaction
    ) throws {
        let keys = try transaction.reading.signingKeys(for: use).filter { !$0.times.isRetired(at: now) }
        for (successor, older) in zip(keys, keys.dropFirst()) where !successor.times.hasBegun(at: now) {
            let retiresAt = older.times.retirement(
                bySuccessorFrom: successor.times.signsFrom, lastIssuedAt: latestIssued, lifetime: lifetime)
            guard let present = older.times.retiresAt, present < retiresAt else { continue }
            var stored = older.stored
            stored.retiresAtMicros = retiresAt.microseconds
            try transaction.put(SigningTables.keys, TextKey(stored.keyID), stored)
        }
    }

    private func publishedInfo(of id: Text) throws -> SigningKeyInfo {
        guard let info = list().first(where: { $0.keyID == id }) else {
            // Somebody else revoked it between the commit and now.
            throw Failure(.signingKeyRevoked, "The key was revoked as soon as it was made.")
        }
        return info
    }
}

extension Failure {
    fileprivate static let tooManySigningKeys = Failure(
        .tooManySigningKeys,
        "There are \(KeySet.countMax) signing keys of this kind, and verifiers read no more; rotate again when the "
            + "oldest has retired.")
}
