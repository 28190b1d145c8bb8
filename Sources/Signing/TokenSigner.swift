public import Base
public import Crypto
public import Messages
public import Reactor
public import Store
public import Tokens

/// The owner of the signing keys: makes, rotates and retires them, and publishes them as a `KeySet`.
///
/// Signing does not wait for it: `sign` reads the published set. RSA is signed on the signing pool (250 µs would hold
/// up a loop), ES256 and EdDSA on the caller's thread.
public actor TokenSigner {
    /// An ID token's life.
    public static let tokenLifetime = Duration.hours(1)
    /// The longest life of a session cookie.
    public static let cookieLifetimeMax = Duration.hours(14 * 24)
    static let retirementMargin = Duration.hours(1)

    nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    public nonisolated let published = PublishedKeySet()

    /// What its keys sign; keys of other signers in the same store are not its business.
    public nonisolated let use: TokenUse
    private nonisolated let store: Store
    private nonisolated let sealing: SealingKey
    private nonisolated let pool: WorkerPool
    private nonisolated let clock: Clock
    private nonisolated let random: RandomSource

    public init(
        use: TokenUse, store: Store, sealing: SealingKey, pool: WorkerPool, loop: EventLoop, clock: Clock,
        random: RandomSource
    ) {
        self.use = use
        self.store = store
        self.sealing = sealing
        self.pool = pool
        self.loop = loop
        self.clock = clock
        self.random = random
    }

    /// Reads the stored keys and publishes them; makes the first one if there is none.
    public func start(algorithm: SigningAlgorithm, record: @escaping KeyEvent) async throws {
        try publishStored()
        if published.current.entries.isEmpty {
            _ = try await rotate(algorithm: algorithm, publishAhead: .zero, record: record)
        }
    }

    /// Writes what the event log says about a key, in the key's own transaction.
    public typealias KeyEvent = @Sendable (borrowing WriteTransaction, EventKind, Text) throws -> Void

    /// Makes a new key, which signs after `publishAhead`; the present one then verifies for one token's life more.
    public func rotate(
        algorithm: SigningAlgorithm?, publishAhead: Duration, record: @escaping KeyEvent
    ) async throws -> SigningKeyInfo {
        let now = clock.now()
        let wanted = algorithm ?? published.current.signingEntry(at: now)?.publicKey.algorithm ?? .rs256
        let key = try await pool.run(deadline: .now.advanced(by: .seconds(30))) { SigningKey.generate(wanted) }
        let id = key.publicKey.keyID
        let signsFrom = now + publishAhead
        // A key that stopped signing stays published for a token's life, and a margin for clocks.
        let lifetime = use == .sessionCookie ? Self.cookieLifetimeMax : Self.tokenLifetime
        let retiresAt = signsFrom + lifetime + Self.retirementMargin
        let sealed = sealing.seal(key.exportDER(), context: id.bytes, random: random)
        try await store.write { [use] transaction in
            var retired: [StoredSigningKey] = []
            try transaction.scan(Tables.signingKeys) { _, value in
                let stored = try StoredSigningKey(decoding: value)
                if stored.retiresAtMicros == 0, stored.isUsed(for: use) { retired.append(stored) }
                return true
            }
            for var stored in retired {
                stored.retiresAtMicros = retiresAt.microseconds
                try transaction.put(Tables.signingKeys, TextKey(stored.keyID), stored)
            }
            let stored = StoredSigningKey(
                keyID: id, algorithm: Text(wanted.rawValue), sealedPrivateKey: sealed,
                createdAtMicros: now.microseconds, signsFromMicros: signsFrom.microseconds, tokenUse: use)
            try transaction.put(Tables.signingKeys, TextKey(id), stored)
            try record(transaction, .signingKeyCreated, id)
        }
        try publishStored()
        guard let entry = published.current.entry(id: id, at: now) else {
            preconditionFailure("a new signing key was not published")
        }
        return info(entry, keySet: published.current, now: now)
    }

    /// Deletes keys that verify nothing any more. Called now and then.
    public func retireExpired(record: @escaping KeyEvent) async throws {
        let now = clock.now()
        let expired = published.current.entries.filter { $0.isRetired(at: now) }.map(\.id)
        guard !expired.isEmpty else { return }
        try await store.write { transaction in
            for id in expired {
                try transaction.delete(Tables.signingKeys, TextKey(id))
                try record(transaction, .signingKeyRetired, id)
            }
        }
        try publishStored()
    }

    /// The present keys, newest first.
    public nonisolated func list() -> [SigningKeyInfo] {
        let keySet = published.current
        let now = clock.now()
        return keySet.entries.map { info($0, keySet: keySet, now: now) }
    }

    /// Signs an ID token. Throws what the signing pool throws when it is full or the deadline has passed.
    public nonisolated func sign(_ claims: IDTokenClaims, deadline: Instant) async throws -> Text {
        guard let entry = published.current.signingEntry(at: claims.issuedAt), let key = entry.key else {
            throw Failure(.unavailable, "NO_SIGNING_KEY", "The server has no signing key yet; try again.")
        }
        let signedBytes = entry.tokenPrefix + Base64.url.encode(claims.payload())
        let signature =
            switch entry.publicKey.algorithm {
            case .rs256: try await pool.run(deadline: deadline, isShort: true) { key.sign(signedBytes) }
            case .es256, .edDSA: key.sign(signedBytes)
            }
        return Text(unchecked: signedBytes + [UInt8(ascii: ".")] + Base64.url.encode(signature))
    }

    private func publishStored() throws {
        let sealing = sealing
        let use = use
        let entries = try store.read { transaction in
            var entries: [KeySet.Entry] = []
            try transaction.scan(Tables.signingKeys) { _, value in
                let stored = try StoredSigningKey(decoding: value)
                guard stored.isUsed(for: use) else { return true }
                let der = try sealing.open(stored.sealedPrivateKey, context: stored.keyID.bytes)
                let retiresAt = stored.retiresAtMicros == 0 ? nil : Timestamp(microseconds: stored.retiresAtMicros)
                entries.append(
                    KeySet.Entry(
                        id: stored.keyID, key: try SigningKey(der: der),
                        createdAt: Timestamp(microseconds: stored.createdAtMicros),
                        signsFrom: Timestamp(microseconds: stored.signsFromMicros), retiresAt: retiresAt))
                return true
            }
            return entries
        }
        published.publish(KeySet(entries: entries))
    }

    private nonisolated func info(_ entry: KeySet.Entry, keySet: KeySet, now: Timestamp) -> SigningKeyInfo {
        let state: SigningKeyState =
            if entry.signsFrom > now {
                .published
            } else if keySet.signingEntry(at: now)?.id == entry.id {
                .signing
            } else {
                .retired
            }
        return SigningKeyInfo(
            keyID: entry.id, algorithm: Text(entry.publicKey.algorithm.rawValue), state: state,
            createdAtMicros: entry.createdAt.microseconds, signsFromMicros: entry.signsFrom.microseconds,
            retiresAtMicros: entry.retiresAt?.microseconds ?? 0, tokenUse: use)
    }
}

extension StoredSigningKey {
    /// Keys of before there were session cookies say nothing, and sign ID tokens.
    fileprivate func isUsed(for use: TokenUse) -> Bool {
        (tokenUse == .unspecified ? .idToken : tokenUse) == use
    }
}
