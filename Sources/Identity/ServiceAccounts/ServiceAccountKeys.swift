public import Base
public import Crypto
public import Messages
import Reactor
public import Rules
import Store

extension ServiceAccountDirectory {
    private static let lifetimeMax = Duration.days(3_650)

    /// Makes a key pair on the crypto pool and keeps its public part. INVALID_ALGORITHM, INVALID_DURATION,
    /// SERVICE_ACCOUNT_NOT_FOUND, BUILT_IN_SERVICE_ACCOUNT, TOO_MANY_SERVICE_ACCOUNT_KEYS; ALREADY_DONE for a repeated
    /// request. The key file is empty with `validateOnly`.
    public func createKey(
        of id: Text, algorithm: SigningAlgorithm, lifetimeSeconds: Int64, by maker: Caller?, validateOnly: Bool,
        origin: Origin, deadline: Instant
    ) async throws -> (key: ServiceAccountKey, keyFile: Secret) {
        try Self.check(algorithm)
        let now = resources.clock.now()
        let expiresAt = try Self.expiry(lifetimeSeconds: lifetimeSeconds, now: now)
        // Checked first, because a key pair takes time and would be refused anyway.
        if !validateOnly, try resources.earlier(origin) != nil { throw Failure.alreadyDone }
        let limits = resources.limits
        let account = try resources.store.read { transaction in
            let account = try transaction.changeableServiceAccount(id)
            try transaction.checkRoomForKey(of: id, limits: limits, now: now)
            return account
        }
        if validateOnly { return (ServiceAccountKey(), .empty) }
        let pair = try await pool.run(tenant: WorkerPool.ownWork, deadline: deadline) { SigningKey.generate(algorithm) }
        let stored = StoredServiceAccountKey(pair.publicKey, uploaded: false, expiresAt: expiresAt, now: now)
        try await resources.store.write { transaction in
            if let maker { try transaction.reading.requireValid(maker, now: now) }
            try transaction.refusingRepeat(of: origin, now: now) {
                _ = try transaction.reading.changeableServiceAccount(id)
                try transaction.add(stored, to: id, limits: limits, origin: origin, now: now)
            }
        }
        return (stored.key ?? ServiceAccountKey(), keyFile(of: account, pair))
    }

    /// Keeps a public key whose private part never was on this server. INVALID_PUBLIC_KEY, INVALID_DURATION,
    /// SERVICE_ACCOUNT_NOT_FOUND, BUILT_IN_SERVICE_ACCOUNT, SERVICE_ACCOUNT_KEY_EXISTS, TOO_MANY_SERVICE_ACCOUNT_KEYS.
    public func uploadKey(
        _ publicKey: [UInt8], of id: Text, lifetimeSeconds: Int64, by maker: Caller?, validateOnly: Bool,
        origin: Origin, deadline: Instant
    ) async throws -> ServiceAccountKey {
        let now = resources.clock.now()
        let expiresAt = try Self.expiry(lifetimeSeconds: lifetimeSeconds, now: now)
        let key = try await pool.run(tenant: WorkerPool.ownWork, deadline: deadline) {
            try UploadedPublicKey.parse(publicKey)
        }
        let stored = StoredServiceAccountKey(key, uploaded: true, expiresAt: expiresAt, now: now)
        let limits = resources.limits
        return try await resources.store.write { transaction in
            if let maker { try transaction.reading.requireValid(maker, now: now) }
            return try transaction.answeringRepeat(of: origin, validateOnly: validateOnly, now: now) {
                _ = try transaction.reading.changeableServiceAccount(id)
                guard try !transaction.exists(Tables.serviceAccountKeys, ServiceAccountKeyKey(id, key.keyID)) else {
                    throw Failure(
                        .serviceAccountKeyExists,
                        "The account has or had this key; a revoked key stays revoked, make another.")
                }
                if validateOnly {
                    try transaction.reading.checkRoomForKey(of: id, limits: limits, now: now)
                } else {
                    try transaction.add(stored, to: id, limits: limits, origin: origin, now: now)
                }
                return stored.key ?? ServiceAccountKey()
            }
        }
    }

    /// Revokes a key: what it signed is refused from now on. A second call changes nothing. SERVICE_ACCOUNT_NOT_FOUND,
    /// SERVICE_ACCOUNT_KEY_NOT_FOUND.
    public func revokeKey(
        _ keyID: Text, of id: Text, validateOnly: Bool, origin: Origin
    ) async throws -> ServiceAccountKey {
        let now = resources.clock.now()
        return try await resources.store.write { transaction in
            try transaction.answeringRepeat(of: origin, validateOnly: validateOnly, now: now) {
                _ = try transaction.reading.serviceAccount(id)
                let recordKey = ServiceAccountKeyKey(id, keyID)
                guard !keyID.isEmpty, keyID.byteCount <= 64,
                    var stored = try transaction.get(Tables.serviceAccountKeys, recordKey), var key = stored.key
                else {
                    throw Failure(
                        .serviceAccountKeyNotFound, "The service account has no key with this id.")
                }
                if validateOnly || key.revokedAtMicros != 0 { return key }
                key.revokedAtMicros = now.microseconds
                stored.key = key
                stored.sealedPrivateKey = []
                try transaction.put(Tables.serviceAccountKeys, recordKey, stored)
                try transaction.appendEvent(
                    .serviceAccountKeyRevoked, tenantID: .empty, origin: origin, detail: Text("\(id)/\(keyID)"),
                    now: now)
                return key
            }
        }
    }

    /// Refuses EdDSA: Admin SDKs and the tokens' readers know RS256 and ES256.
    private static func check(_ algorithm: SigningAlgorithm) throws(Failure) {
        guard algorithm != .edDSA else {
            throw .invalid(.invalidAlgorithm, field: "algorithm", "must be RS256 or ES256")
        }
    }

    private static func expiry(lifetimeSeconds: Int64, now: Timestamp) throws(Failure) -> Timestamp? {
        guard lifetimeSeconds != 0 else { return nil }
        let lifetime = Duration.seconds(lifetimeSeconds)
        guard lifetimeSeconds > 0, lifetime <= lifetimeMax else {
            throw .invalid(.invalidDuration, field: "lifetime_seconds", "must be 0 to \(3_650 * 86_400)")
        }
        return now + lifetime
    }
}

extension StoredServiceAccountKey {
    init(_ publicKey: VerificationKey, uploaded: Bool, expiresAt: Timestamp?, now: Timestamp) {
        self.init(
            key: ServiceAccountKey(
                keyID: publicKey.keyID, algorithm: Text(publicKey.algorithm.rawValue), uploaded: uploaded,
                createdAtMicros: now.microseconds, expiresAtMicros: expiresAt?.microseconds ?? 0),
            publicKey: publicKey.exportSPKI())
    }
}

extension ReadTransaction {
    /// TOO_MANY_SERVICE_ACCOUNT_KEYS.
    fileprivate func checkRoomForKey(of id: Text, limits: Limits, now: Timestamp) throws {
        let liveCount = try serviceAccountKeys(of: id).count { $0.isLive(at: now) }
        guard liveCount < limits.serviceAccountKeysMax else {
            throw Failure(
                .tooManyServiceAccountKeys,
                "The service account has \(liveCount) keys that count; revoke one first.")
        }
    }
}

extension WriteTransaction {
    /// Adds a new key; when there are too many, the oldest of the revoked and expired keys are deleted.
    func add(
        _ stored: StoredServiceAccountKey, to id: Text, limits: Limits, origin: Origin, now: Timestamp
    ) throws {
        try reading.checkRoomForKey(of: id, limits: limits, now: now)
        let kept = try reading.serviceAccountKeys(of: id)
        let surplus = kept.count + 1 - limits.serviceAccountKeysKeptMax
        let over = kept.filter { !$0.isLive(at: now) }.sorted { $0.createdAtMicros < $1.createdAtMicros }
        let keyID = stored.key?.keyID ?? .empty
        try put(Tables.serviceAccountKeys, ServiceAccountKeyKey(id, keyID), stored)
        for key in over.prefix(max(0, surplus)) {
            try delete(Tables.serviceAccountKeys, ServiceAccountKeyKey(id, key.keyID))
        }
        try appendEvent(
            .serviceAccountKeyCreated, tenantID: .empty, origin: origin, detail: Text("\(id)/\(keyID)"), now: now)
    }
}
