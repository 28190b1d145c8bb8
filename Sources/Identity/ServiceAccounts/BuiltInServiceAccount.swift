import Base
import Crypto
import Messages
import Reactor
import Store
import Synchronization

/// The service account that signs for the server itself: its private key is sealed in the store and never leaves it.
///
/// The key is made at the first use, and again when an admin revoked the one before.
final class BuiltInServiceAccount: Sendable {
    static let id: Text = "postern"
    let email: Text

    private let resources: Resources
    private let sealing: SealingKey
    private let pool: WorkerPool
    /// The opened key of the newest record; the store is asked each time which record counts.
    private let opened = Mutex<SigningKey?>(nil)

    init(resources: Resources, sealing: SealingKey, pool: WorkerPool, email: Text) {
        self.resources = resources
        self.sealing = sealing
        self.pool = pool
        self.email = email
    }

    /// Makes the account in an empty store. Its tokens are for all tenants, and it has no role for calls.
    func start() async throws {
        let now = resources.clock.now()
        let account = ServiceAccount(
            serviceAccountID: Self.id, email: email, displayName: "built in", scope: Scope(tenants: .all(true)),
            customTokens: true, builtIn: true, createdAtMicros: now.microseconds)
        try await resources.store.write { transaction in
            // A changed project_id changes the email: tokens that were signed under the old email are refused.
            let known = try transaction.reading.liveServiceAccount(Self.id)
            guard known?.email != account.email else { return }
            let event: EventKind = known == nil ? .serviceAccountCreated : .serviceAccountUpdated
            try transaction.put(account, over: known, event, origin: .server, now: now)
        }
    }

    /// The key that signs now; makes one if there is none.
    func signingKey() async throws -> SigningKey {
        let now = resources.clock.now()
        if let stored = try resources.store.read({ try $0.liveBuiltInKey(at: now) }) { return try open(stored) }
        let made = try await pool.run(tenant: WorkerPool.ownWork, deadline: .now.advanced(by: .seconds(30))) {
            SigningKey.generate(.es256)
        }
        var record = StoredServiceAccountKey(made.publicKey, uploaded: false, expiresAt: nil, now: now)
        record.sealedPrivateKey = try sealing.seal(
            made.exportDER(), context: Self.context(made.publicKey.keyID), random: resources.random)
        let wanted = record
        let limits = resources.limits
        let stored = try await resources.store.write { transaction in
            // Another call may have made one meanwhile.
            if let present = try transaction.reading.liveBuiltInKey(at: now) { return present }
            try transaction.add(wanted, to: Self.id, limits: limits, origin: .server, now: now)
            return wanted
        }
        return try open(stored)
    }

    private func open(_ stored: StoredServiceAccountKey) throws -> SigningKey {
        let keyID = stored.key?.keyID ?? .empty
        if let known = opened.withLock({ $0 }), known.publicKey.keyID == keyID { return known }
        let der = try sealing.open(stored.sealedPrivateKey, context: Self.context(keyID))
        let key = try SigningKey(der: der)
        guard key.publicKey.keyID == keyID else { throw CryptoError.notAuthentic }
        opened.withLock { $0 = key }
        return key
    }

    private static func context(_ keyID: Text) -> [UInt8] { [UInt8]("service account key/".utf8) + keyID.bytes }
}

extension ReadTransaction {
    fileprivate func liveBuiltInKey(at now: Timestamp) throws -> StoredServiceAccountKey? {
        try storedServiceAccountKeys(of: BuiltInServiceAccount.id).first { $0.key?.isLive(at: now) == true }
    }
}
