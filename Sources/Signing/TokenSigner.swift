public import Base
public import Crypto
public import Messages
public import Reactor
public import Store
import Synchronization
public import Tokens

/// The owner of the signing keys: makes, rotates, revokes and retires them, one change after the other, and publishes
/// their public parts as a `KeySet`. Nobody else has the private parts in memory.
///
/// Signing does not wait for a change: `sign` takes the present keys. RSA is signed on the signing pool (250 µs would
/// hold up a loop), ES256 and EdDSA on the caller's thread.
public actor TokenSigner {
    /// The lifetime of an ID token.
    public static let tokenLifetime = Duration.hours(1)
    /// The longest lifetime of a session cookie.
    public static let cookieLifetimeMax = Duration.hours(14 * 24)

    nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    public nonisolated let published = PublishedKeySet()

    /// The use of its keys. It ignores keys of other signers in the same store.
    public nonisolated let use: TokenUse
    nonisolated let store: Store
    nonisolated let sealing: SealingKey
    nonisolated let pool: WorkerPool
    nonisolated let clock: Clock
    nonisolated let random: RandomSource
    public nonisolated let rotation: SigningKeyRotation
    private nonisolated let tokenByteCountMax: Int
    /// The number of the newest key that has signed here, and the time of the latest token, rounded up to a minute. A
    /// clock that is set back must not undo them.
    private nonisolated let newestSigned = Atomic<Int64>(.min)
    private nonisolated let latestIssued = Atomic<Int64>(.min)
    private nonisolated let publishing = Mutex<Void>(())
    private nonisolated let held = Mutex(HeldKeys())
    /// How often a private key was opened and checked.
    nonisolated let keysRead = Counter()
    /// The order of changes of the keys.
    private var turns = TurnQueue()

    /// The keys of the last read.
    private struct HeldKeys: Sendable {
        var published = KeySet(entries: [])
        var privateKeys: [Text: SigningKey] = [:]
    }

    public init(
        use: TokenUse, store: Store, sealing: SealingKey, pool: WorkerPool, loop: EventLoop, clock: Clock,
        random: RandomSource, rotation: SigningKeyRotation = .byHand, limits: Limits = Limits()
    ) {
        self.use = use
        self.store = store
        self.sealing = sealing
        self.pool = pool
        self.loop = loop
        self.clock = clock
        self.random = random
        self.rotation = rotation
        self.tokenByteCountMax = limits.tokenMax
        // If anybody changes the keys, even on another node, they are known here before the change is acknowledged.
        store.follow([SigningTables.keys.declaration], as: use == .sessionCookie ? "cookie keys" : "token keys") {
            [weak self] _ in try self?.refresh()
        }
    }

    /// Reads the stored keys and publishes them; makes the first key if there is none.
    public func start(algorithm: SigningAlgorithm, record: @escaping KeyEvent) async throws {
        try refresh()
        if published.current.entries.isEmpty { try await makeFirst(algorithm, record: record) }
    }

    /// Writes the event about a key to the event log, in the key's own transaction.
    public typealias KeyEvent = @Sendable (borrowing WriteTransaction, EventKind, Text) throws -> Void

    /// The present keys, newest first.
    public nonisolated func list() -> [SigningKeyInfo] {
        let keySet = published.current
        let now = clock.now()
        let signing = keySet.signingEntry(at: now, hasSigned: newestSignedSequence)?.id
        let (newest, rotatesAt) = (keySet.entries.first?.id, nextKeyAt?.microseconds ?? 0)
        return keySet.entries.map { entry in
            let state: SigningKeyState =
                if !entry.times.hasBegun(at: now), entry.id != signing { .published } else if entry.id == signing {
                    .signing
                } else {
                    .retired
                }
            return SigningKeyInfo(
                keyID: entry.id, algorithm: Text(entry.publicKey.algorithm.rawValue), state: state,
                createdAtMicros: entry.times.createdAt.microseconds,
                signsFromMicros: entry.times.signsFrom.microseconds,
                retiresAtMicros: entry.times.retiresAt?.microseconds ?? 0, tokenUse: use,
                rotatesAtMicros: entry.id == newest ? rotatesAt : 0)
        }
    }

    /// When the server makes the next key by itself; nil if it makes none.
    public nonisolated var nextKeyAt: Timestamp? {
        guard let newest = published.current.entries.first?.times else { return nil }
        return rotation.nextKeyAt(createdAt: newest.createdAt, signsFrom: newest.signsFrom, at: clock.now())
    }

    /// Whether the next key is to be made now, as far as the published keys tell.
    public nonisolated var isNextKeyDue: Bool {
        let entries = published.current.entries
        guard let newest = entries.first?.times else { return false }
        return rotation.isDue(after: newest, keyCount: entries.count, at: clock.now())
    }

    /// Signs an ID token that is not longer than what is accepted. CLAIMS_TOO_LARGE if the claims that cannot be left
    /// out are too long together. Throws the signing pool's error if the pool, or the tenant's line in it, is full, or
    /// if the deadline has passed.
    public nonisolated func sign(_ claims: IDTokenClaims, deadline: Instant) async throws -> Text {
        let order = try order(of: claims)
        guard order.isForPool else { return try order.token() }
        return try await pool.run(tenant: claims.tenantID, source: claims.uid, deadline: deadline, isShort: true) {
            try order.token()
        }
    }

    /// Whether a token of this time is signed on the pool, and not on the caller's thread.
    public nonisolated func signsOnPool(at time: Timestamp) -> Bool {
        let entry = published.current.signingEntry(at: time, hasSigned: newestSignedSequence)
        return entry?.publicKey.algorithm == .rs256
    }

    /// Begins to sign, for a caller who does not know yet whether the token may be handed out. From any thread; it only
    /// queues. Nil where `sign` would not use the pool, and if there is no room or no key: then the caller signs when
    /// it needs the token, and gets the error.
    public nonisolated func begin(
        _ claims: IDTokenClaims, deadline: Instant, trace: CallTrace?
    ) -> WorkerPool.BegunWork<Text>? {
        guard let order = try? order(of: claims), order.isForPool else { return nil }
        return try? pool.begin(
            tenant: claims.tenantID, source: claims.uid, deadline: deadline, isShort: true, trace: trace
        ) {
            try order.token()
        }
    }

    private nonisolated func order(of claims: IDTokenClaims) throws(Failure) -> SigningOrder {
        let held = held.withLock { $0 }
        guard let entry = held.published.signingEntry(at: claims.issuedAt, hasSigned: newestSignedSequence),
            let key = held.privateKeys[entry.id]
        else { throw Failure(.noSigningKey, "The server has no signing key yet; try again.") }
        noteSigning(by: entry.times, at: claims.issuedAt)
        return SigningOrder(claims: claims, entry: entry, key: key, byteCountMax: tokenByteCountMax)
    }

    // MARK: What was signed

    nonisolated var newestSignedSequence: Int64 { newestSigned.load(ordering: .acquiring) }
    nonisolated var latestIssuedAt: Timestamp { Timestamp(microseconds: latestIssued.load(ordering: .acquiring)) }

    /// Costs two loads for nearly every token: the newest key changes with a rotation, the time once a minute.
    private nonisolated func noteSigning(by key: SigningKeyTimes, at time: Timestamp) {
        if key.sequence > newestSigned.load(ordering: .relaxed) {
            newestSigned.max(key.sequence, ordering: .acquiringAndReleasing)
        }
        if time.microseconds > latestIssued.load(ordering: .relaxed) {
            latestIssued.max((time + .minutes(1)).microseconds, ordering: .acquiringAndReleasing)
        }
    }

    // MARK: The order of changes

    /// Returns when the earlier changes of the keys are done.
    func takeTurn() async {
        // A turn's promise never fails.
        if let turn = turns.take() { _ = try? await turn.value() }
    }

    func passTurn() { turns.pass() }

    // MARK: Publishing

    /// Publishes the stored keys. Any thread; of two calls at once, neither replaces newer keys by older ones.
    ///
    /// A key that cannot be read does not keep the others from being followed: one of them may just have been revoked.
    /// It stays as it was read before, because whoever revokes it writes its row anew. The error is thrown at the end,
    /// so that the store tells of it, and tries again with its next commit.
    private nonisolated func refresh() throws {
        try publishing.withLock { _ in
            let before = held.withLock { $0 }
            let (keys, damagedIDs) = try store.read { try $0.readableSigningKeys(for: use) }
            var (entries, privateKeys): ([KeySet.Entry], [Text: SigningKey]) = ([], [:])
            var revokedIDs = Set(keys.filter { $0.revokedAtMicros != 0 }.map(\.keyID))
            var failure: (any Error)?
            for key in NumberedSigningKey.live(in: keys) {
                let id = key.stored.keyID
                do {
                    // The id is made of the key, so a key that is held is this one.
                    let privateKey = try before.privateKeys[id] ?? read(key.stored)
                    privateKeys[id] = privateKey
                    entries.append(KeySet.Entry(id: id, publicKey: privateKey.publicKey, times: key.times))
                } catch {
                    failure = error
                }
            }
            for id in damagedIDs {
                failure = StoreError.corrupt(table: SigningTables.keys.name.description)
                if before.published.revokedIDs.contains(id) { revokedIDs.insert(id) }
                guard let entry = before.published.entries.first(where: { $0.id == id }) else { continue }
                entries.append(entry)
                privateKeys[id] = before.privateKeys[id]
            }
            // A start that is refused publishes nothing.
            if let failure, before.published.entries.isEmpty { throw failure }
            let keySet = KeySet(entries: entries, revokedIDs: revokedIDs)
            held.withLock { $0 = HeldKeys(published: keySet, privateKeys: privateKeys) }
            published.publish(keySet)
            if let failure { throw failure }
        }
    }

    /// Takes 2 ms and more for RSA. After a change of the keys, all writes wait for it.
    ///
    /// The id has to be the key's own. Other secrets are sealed with an id alone, too, and an import chooses them:
    /// without this, such a secret in a key's place would be a key that somebody else has.
    private nonisolated func read(_ stored: StoredSigningKey) throws -> SigningKey {
        keysRead.add()
        let key = try SigningKey(der: sealing.open(stored.sealedPrivateKey, context: stored.keyID.bytes))
        guard key.publicKey.keyID == stored.keyID else { throw CryptoError.notAuthentic }
        return key
    }

    /// For the test of a key that somebody else has.
    nonisolated func privateKey(_ id: Text) -> SigningKey? { held.withLock { $0.privateKeys[id] } }
}
