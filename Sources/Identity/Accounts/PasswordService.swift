public import Base
public import Crypto
import Messages
public import Reactor
public import Rules
public import Store

/// Hashes and checks passwords on the password pool, never on an event loop.
///
/// Unknown users cost as much as known ones: a decoy of the tenant's usual kinds is checked for them.
public final class PasswordService: Sendable {
    private let pool: WorkerPool
    private let store: Store
    private let sealing: SealingKey
    private let random: RandomSource
    private let profile: PasswordHashProfile
    private let arena: PasswordArena
    public let computed = PasswordHashCounts()
    /// Rows of imports whose hash would cost too much to check.
    public let refusedImports = Counter()

    public init(
        pool: WorkerPool, store: Store, sealing: SealingKey, random: RandomSource, profile: PasswordHashProfile
    ) {
        self.pool = pool
        self.store = store
        self.sealing = sealing
        self.random = random
        self.profile = profile
        self.arena = PasswordArena(profile: profile)
    }

    /// The stored form of a new password's hash.
    public func hash(_ password: Secret, _ turn: PasswordTurn) async throws -> Text {
        let profile = profile(for: turn.settings)
        let cost = WorkCost(profile.work)
        return try await inTurn(turn, cost) { [self] in
            try newHash(of: password, profile)
        }
    }

    /// The result of a password check.
    public enum Outcome: Sendable, Equatable {
        case wrong
        case right
        /// The password is right; the value is a hash under the present profile, to replace the old one.
        case rightRehashed(Text)
    }

    /// Checks a password against a stored hash. `check` records whether the check began and whether the password was
    /// right, even if the call ends without an answer.
    public func verify(
        _ password: Secret, stored: Text, _ turn: PasswordTurn, check: PasswordCheck? = nil
    ) async throws -> Outcome {
        guard let credential = try? PasswordCredential(stored: stored) else {
            throw Failure(.corruptPasswordHash, "The stored password hash cannot be read.")
        }
        let signerKey = try credential.signerKeyID.map { try self.signerKey($0, tenantID: turn.tenantID) }
        let profile = profile(for: turn.settings)
        let cost = Self.cost(ofChecking: credential, under: profile)
        return try await inTurn(turn, cost) { [self] in
            check?.begin()
            for candidate in PasswordBytes.candidates(password, for: credential.kind) {
                guard try isRight(candidate, credential, signerKey, deadline: turn.deadline) else { continue }
                check?.foundRight()
                guard credential.needsRehash(under: profile) else { return .right }
                try Self.checkTime(turn.deadline)
                return .rightRehashed(try newHash(of: password, profile))
            }
            return .wrong
        }
    }

    /// The indices of the hashes that are of the password; none of these hashes is stored here.
    func matching(
        _ password: Secret, _ credentials: [PasswordCredential], signerKey: Secret?, _ turn: PasswordTurn
    ) async throws -> [Int] {
        let works = credentials.map(\.work)
        let cost = WorkCost(
            time: works.reduce(.zero) { $0 + $1.time }, memoryByteCount: works.map(\.memoryByteCount).max() ?? 0)
        return try await inTurn(turn, cost) { [self] in
            try credentials.indices.filter { index in
                let credential = credentials[index]
                return try PasswordBytes.candidates(password, for: credential.kind).contains { candidate in
                    try isRight(candidate, credential, signerKey, deadline: turn.deadline)
                }
            }
        }
    }

    /// Takes as long as checking a real password of this tenant, and finds nothing.
    public func verifyDecoy(
        _ password: Secret, email: Email, _ turn: PasswordTurn, check: PasswordCheck? = nil
    ) async throws {
        let credential = try store.read { try decoy(for: email, settings: turn.settings, in: $0) }
        let signerKey = Secret(random.bytes(64))
        let cost = Self.cost(ofChecking: credential, under: profile(for: turn.settings))
        try await inTurn(turn, cost) { [self] in
            check?.begin()
            // As often as for a real hash: a password that NFC changes is tried in both forms.
            for candidate in PasswordBytes.candidates(password, for: credential.kind) {
                _ = try isRight(candidate, credential, signerKey, deadline: turn.deadline)
            }
        }
    }

    /// The cost that a check of the hash declares to the pool. A decoy of an outdated kind declares the new hash too,
    /// although it never makes one: a full pool would otherwise refuse a check of a real hash, and not of a decoy.
    static func cost(ofChecking credential: PasswordCredential, under profile: PasswordHashProfile) -> WorkCost {
        WorkCost(credential.work, rehashedAs: credential.needsRehash(under: profile) ? profile : nil)
    }

    private func inTurn<Value: Sendable>(
        _ turn: PasswordTurn, _ cost: WorkCost, _ work: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        try await pool.run(
            tenant: turn.tenantID, source: turn.source, deadline: turn.deadline, cost: cost, work)
    }

    /// Whether one form of a password belongs to the hash. DEADLINE_EXCEEDED before anything is computed.
    @available(*, noasync, message: "password pool only")
    private func isRight(
        _ candidate: Secret, _ credential: PasswordCredential, _ signerKey: Secret?, deadline: Instant
    ) throws -> Bool {
        try Self.checkTime(deadline)
        return try computed.count(credential.kind) {
            try arena.with(memoryOf: credential.work) {
                try credential.verify(candidate, signerKeys: { _ in signerKey })
            }
        }
    }

    /// The stored form of a new hash of the password.
    @available(*, noasync, message: "password pool only")
    private func newHash(of password: Secret, _ profile: PasswordHashProfile) throws -> Text {
        let canonical = PasswordBytes.canonical(password)
        return try computed.count(.argon2id) {
            try arena.with(memoryOf: profile.work) {
                try PasswordCredential.hash(canonical, profile: profile, random: random).stored
            }
        }
    }

    /// Seals an import's signer key. Returns the id by which the imported hashes name it.
    func signerKeyRecord(_ signerKey: Secret) throws -> (id: Text, record: StoredHashSecret) {
        let id = Self.id(ofSignerKey: signerKey)
        return (id, StoredHashSecret(sealed: try sealing.seal(signerKey, context: id.bytes, random: random)))
    }

    func signerKey(_ id: Text, tenantID: Text) throws -> Secret {
        guard let record = try store.read({ try $0.get(Tables.hashSecrets, TenantHashKey(tenantID, id.bytes)) }) else {
            throw Failure(.corruptPasswordHash, "The signer key of an imported password is missing.")
        }
        let signerKey = try sealing.open(record.sealed, context: id.bytes)
        // Signing keys are sealed with an id alone, too: their ids are made of other bytes.
        guard Self.id(ofSignerKey: signerKey) == id else { throw CryptoError.notAuthentic }
        return signerKey
    }

    private static func id(ofSignerKey signerKey: Secret) -> Text {
        Text(unchecked: Base64.url.encode(signerKey.withBytes { Digest.sha256($0) }.prefix(16)))
    }

    /// Runs between two hashes, so that no hash begins when nobody waits for it any more.
    private static func checkTime(_ deadline: Instant) throws(Failure) {
        guard Instant.now < deadline else {
            throw Failure(.deadlineExceeded, "the deadline passed while the password was checked")
        }
    }

    private func profile(for settings: TenantSettings) -> PasswordHashProfile {
        settings.isSynthetic ? .cheap : profile
    }
}

extension WorkCost {
    fileprivate init(_ work: PasswordCredential.Work, rehashedAs profile: PasswordHashProfile? = nil) {
        let second = profile?.work
        self.init(
            time: work.time + (second?.time ?? .zero),
            memoryByteCount: max(work.memoryByteCount, second?.memoryByteCount ?? 0))
    }
}

// MARK: - Decoys

extension PasswordService {
    /// More different costs than this in one tenant come from somebody who imported them on purpose.
    private static let costsMax = 64

    /// The decoy for an address without a password. Its cost is one of the tenant's hashes' costs, each chosen as often
    /// as the tenant has it, and the same cost for one address as long as their shares are about the same: an address
    /// whose cost changed with each new user would have no account.
    func decoy(
        for email: Email, settings: TenantSettings, in transaction: borrowing ReadTransaction
    ) throws -> PasswordCredential {
        let costs = try transaction.passwordHashCosts(tenantID: settings.tenantID, limit: Self.costsMax)
        let total = costs.reduce(UInt64(0)) { $0 &+ UInt64($1.count) }
        // A place between 0 and 1, which each address has for ever, among the shares.
        let place = HMACKey(settings.secret).tag(of: email.canonical.bytes).prefix(8).bigEndianNumber
        var rest = place.multipliedFullWidth(by: total).high
        for (cost, count) in costs {
            if rest < UInt64(count), let decoy = PasswordCredential.decoy(cost: cost, random: random) { return decoy }
            rest -= min(rest, UInt64(count))
        }
        return PasswordCredential.decoy(profile: profile(for: settings), random: random)
    }
}

extension ReadTransaction {
    fileprivate func passwordHashCosts(tenantID: Text, limit: Int) throws -> [(cost: Text, count: Int64)] {
        var costs: [(cost: Text, count: Int64)] = []
        try scan(Tables.passwordHashKinds, prefix: TenantPrefix(tenantID), limit: limit) { row in
            let count = try row.record.count
            if count > 0 { costs.append((try row.key.text, count)) }
            return true
        }
        return costs
    }
}
