public import Base
import Crypto
public import Messages
public import Rules
public import Store
import Synchronization
import Tokens

/// Recognises callers, by API key or by the JWT of a service account; makes, lists and revokes the API keys.
///
/// A key reads `pk_<12 characters: its id>_<43 characters: 32 random bytes>`; only its hash is stored. Looking up a key
/// costs a read and a SHA-256, a JWT costs a signature check; connections remember the result while `isCurrent`.
public final class CallerDirectory: Sendable {
    /// The `typ` in the header of every caller JWT; a JWT with another `typ` is not one.
    public static let jwtType: Text = "postern-caller+jwt"

    let resources: Resources
    private let signers: ServiceAccountSigners
    /// The audience of caller JWTs.
    private let audience: Text
    private let credentials = CredentialMarks()
    private let listeners = Mutex<[@Sendable (ChangedCredentials) -> Void]>([])
    /// Writes the events of calls that were refused.
    public let deniedCalls: DeniedCalls
    /// When keys were last used.
    public let uses: KeyUses
    let adminKeys = KnownAdminKeys()
    /// Whether `indexOldKeys` has looked at all keys.
    let hasIndexedOldKeys = Atomic<Bool>(false)
    /// How often a credential was looked up, or looked at again.
    let lookups = Counter()
    private static let scheme = [UInt8]("bearer ".utf8)
    private static let keyPrefix = [UInt8]("pk_".utf8)
    private static let idByteCount = 12

    /// `issuer` is the project's; the audience of caller JWTs is made from it.
    public init(resources: Resources, signers: ServiceAccountSigners, issuer: Text) {
        self.resources = resources
        self.signers = signers
        self.deniedCalls = DeniedCalls(resources)
        self.uses = KeyUses(resources)
        self.audience = Text(unchecked: issuer.bytes + [UInt8]("/caller".utf8))
        resources.store.follow(ChangedCredentials.tables, as: "callers") { [weak self] in self?.follow($0) }
    }

    private func follow(_ announcement: Announcement) {
        let changed = ChangedCredentials(announcement)
        guard !changed.isEmpty else { return }
        credentials.move(changed, to: announcement.snapshot)
        for listener in listeners.withLock({ $0 }) { listener(changed) }
    }

    /// Has `listener` called with the credentials that each commit changed, here or on another node of the cluster, for
    /// good. It runs on the writer's thread and must be quick. Callers that are remembered are out of date by then.
    public func listen(_ listener: @escaping @Sendable (ChangedCredentials) -> Void) {
        listeners.withLock { $0.append(listener) }
    }

    public var now: Timestamp { resources.clock.now() }

    /// False once the credential of a caller was changed or ended after that moment, when the caller was looked up. The
    /// change is answered only after that.
    public func isCurrent(asOf snapshot: Snapshot, _ places: CallerPlaces) -> Bool {
        credentials.isCurrent(asOf: snapshot, places)
    }

    /// For `isCurrent`. `certificate`: that of the connection over which the caller came.
    public func places(of caller: Caller, _ certificate: ClientCertificate?) -> CallerPlaces {
        credentials.places(of: caller, certificate)
    }

    /// The caller behind a credential, a certificate, or both. With both, each has to allow what the caller does:
    /// `RefusedCaller` where they are for different tenants. Nil for a credential that is not valid, whatever the
    /// certificate. A certificate without a mapping is ignored.
    public func caller(
        authorization: UnsafeRawBufferPointer?, certificate: ClientCertificate?,
        in transaction: borrowing ReadTransaction
    ) throws -> Caller? {
        lookups.add()
        let mapped = try certificate.flatMap { try transaction.caller(of: $0, now: resources.clock.now()) }
        guard let authorization else { return mapped }
        guard let shown = try caller(authorization: authorization, in: transaction) else { return nil }
        guard let mapped else { return shown }
        do throws(Failure) {
            return try Caller(shown, boundBy: mapped)
        } catch {
            throw RefusedCaller(shown, error)
        }
    }

    /// The caller behind `Bearer pk_…` or `Bearer <JWT>`, or nil. `Bearer` may be written in any case.
    public func caller(
        authorization: UnsafeRawBufferPointer, in transaction: borrowing ReadTransaction
    ) throws -> Caller? {
        guard authorization.count <= Self.scheme.count + resources.limits.tokenMax,
            Self.beginsWithScheme(authorization)
        else { return nil }
        let credential = [UInt8](authorization.dropFirst(Self.scheme.count))
        return credential.starts(with: Self.keyPrefix)
            ? try apiKeyCaller(credential, in: transaction) : try jwtCaller(credential, in: transaction)
    }

    /// The name of a scheme is case-insensitive (RFC 9110 §11.1); one space follows it (§11.4).
    private static func beginsWithScheme(_ authorization: UnsafeRawBufferPointer) -> Bool {
        guard authorization.count >= scheme.count else { return false }
        return zip(authorization, scheme).allSatisfy { $0.lowercasedASCII == $1 }
    }

    /// CALLER_UNAUTHENTICATED once the credential a stream began with is revoked, disabled or expired, or its rights
    /// have changed. API_KEY_EXPIRED, ADDRESS_NOT_ALLOWED. `peer`: the address of the connection, where it is known.
    public func checkStillValid(
        _ caller: Caller, from peer: Text? = nil, in transaction: borrowing ReadTransaction
    ) throws {
        lookups.add()
        try transaction.requireValid(caller, from: peer, now: resources.clock.now())
    }

    private func apiKeyCaller(_ key: [UInt8], in transaction: borrowing ReadTransaction) throws -> Caller? {
        let idStart = Self.keyPrefix.count
        let idEnd = idStart + Self.idByteCount
        guard key.count <= 256, key.count > idEnd + 1, key[idEnd] == UInt8(ascii: "_"),
            let id = Text(validating: Array(key[idStart..<idEnd])),
            let stored = try transaction.get(Tables.apiKeys, TextKey(id)),
            let caller = try Caller(
                stored, secretHash: Digest.sha256(key), quotaOwner: transaction.quotaOwner(of: stored))
        else { return nil }
        try caller.checkLife(now: resources.clock.now())
        return caller
    }

    private func jwtCaller(_ token: [UInt8], in transaction: borrowing ReadTransaction) throws -> Caller? {
        let now = resources.clock.now()
        guard let jwt = try? callerJWT(token, now: now),
            let signer = try signers.signer(of: jwt, now: now, in: transaction), signer.account.role != .unspecified
        else { return nil }
        return Caller(signer.account, keyID: signer.key.keyID, until: min(jwt.expiresAt, signer.expiresAt))
    }

    /// A caller JWT whose signature is still to be checked. It must name its key, so that an unknown caller cannot make
    /// the server try several.
    private func callerJWT(_ token: [UInt8], now: Timestamp) throws(CallerFault) -> ServiceAccountJWT {
        guard let jwt = ServiceAccountJWT(token, limits: resources.limits) else { throw .malformed }
        guard jwt.type == Self.jwtType else { throw .type }
        guard jwt.keyID != nil else { throw .keyID }
        guard jwt.audience == audience else { throw .audience }
        do throws(TokenError) {
            try jwt.checkTimes(now: now)
        } catch {
            throw error == .expired ? CallerFault.expired : CallerFault.times
        }
        return jwt
    }

    /// CALLER_UNAUTHENTICATED for a credential behind which there is no caller. The metadata `cause` tells what is
    /// wrong with it, unless it looks like an API key.
    public func refusal(of authorization: UnsafeRawBufferPointer) -> Failure {
        guard !authorization.isEmpty, authorization.count <= Self.scheme.count + resources.limits.tokenMax else {
            return .callerUnauthenticated
        }
        let credential = [UInt8](authorization.dropFirst(Self.scheme.count))
        do throws(CallerFault) {
            guard Self.beginsWithScheme(authorization) else { throw CallerFault.scheme }
            if credential.starts(with: Self.keyPrefix) { return .callerUnauthenticated }
            _ = try callerJWT(credential, now: resources.clock.now())
            throw CallerFault.notAuthentic
        } catch {
            return error.failure(audience: audience)
        }
    }

    /// Makes a key. INVALID_QUOTA, INVALID_ROLE, INVALID_SCOPE, INVALID_DISPLAY_NAME, INVALID_EXPIRY,
    /// INVALID_ADDRESS_RANGE, INSUFFICIENT_PERMISSION, TENANT_NOT_FOUND, TOO_MANY_API_KEYS.
    ///
    /// `maker` is the caller who makes the key; nil for the server. It cannot give a right that it does not have.
    /// `keep` gets the secret before the key is in the store. If `keep` throws, this throws the same and no key is
    /// made. So there is never a key whose secret got lost on the way.
    public func create(
        _ wanted: WantedKey, by maker: Caller? = nil, validateOnly: Bool, origin: Origin,
        event: EventKind = .apiKeyCreated, keep: (Secret) throws -> Void = { _ in }
    ) async throws -> (key: ApiKey, secret: Secret) {
        let now = resources.clock.now()
        var (made, secret) = try makeKey(wanted, now: now)
        try maker?.checkMayMake(made)
        let owner = maker?.quotaOwnerOfItsKeys
        // Otherwise a limited key could make keys without limits.
        if let maker, owner != nil { made.quotas = maker.quotas }
        made.quotaOwnerID = owner?.id ?? .empty
        let (key, stored) = (made, StoredApiKey(made, secret: secret, quotaOwner: owner))
        try keep(secret)
        let limits = resources.limits
        let ended = try resources.store.read { try $0.endedKeys(beside: key, by: maker, limits: limits, now: now) }
        try await resources.store.write { transaction in
            if let maker { try transaction.reading.requireValid(maker, now: now) }
            try transaction.reading.checkExists(key.scope)
            try transaction.refusingRepeat(of: origin, validateOnly: validateOnly, now: now) {
                try transaction.makeRoom(
                    for: key, by: maker, ended: ended, limits: limits, now: now, validateOnly: validateOnly)
                if validateOnly { return }
                try transaction.put(Tables.apiKeys, TextKey(key.apiKeyID), stored)
                try transaction.noteTenant(of: key)
                try transaction.appendEvent(
                    event, tenantID: key.logTenantID(changedBy: maker), origin: origin,
                    detail: key.eventDetail(since: ApiKey()), now: now)
            }
        }
        if !validateOnly { adminKeys.note(key) }
        return (key, secret)
    }

    /// Makes the first project-admin key of an empty store; nil if there are keys, or another node comes first.
    public func createFirstAdmin(_ keeper: (any SecretKeeper)? = nil) async throws -> Secret? {
        guard try resources.store.read({ try $0.isEmpty(Tables.apiKeys) }) else {
            try finish(keeper)
            return nil
        }
        let now = resources.clock.now()
        let (key, secret) = try makeKey(
            WantedKey(role: .projectAdmin, scope: Scope(tenants: .all(true)), displayName: "first admin key"), now: now)
        let (id, stored) = (key.apiKeyID, StoredApiKey(key, secret: secret))
        try keeper?.keep(secret)
        let isFirst = try await resources.store.write { transaction in
            guard try transaction.reading.isEmpty(Tables.apiKeys) else { return false }
            try transaction.put(Tables.apiKeys, TextKey(id), stored)
            try transaction.appendEvent(
                .apiKeyCreated, tenantID: .empty, origin: .server, detail: key.eventDetail(since: ApiKey()), now: now)
            return true
        }
        guard isFirst else {
            try keeper?.discard()
            return nil
        }
        adminKeys.note(key)
        try keeper?.show()
        return secret
    }

    /// Finishes an earlier start of the server that ended between keeping a secret and showing it.
    private func finish(_ keeper: (any SecretKeeper)?) throws {
        guard let keeper, let secret = try keeper.kept() else { return }
        let bytes = secret.withBytes { [UInt8]($0) }
        let isGood = try resources.store.read { try apiKeyCaller(bytes, in: $0) != nil }
        if isGood { try keeper.show() } else { try keeper.discard() }
    }

    static func secret(of id: Text, random: RandomSource) -> [UInt8] {
        keyPrefix + id.bytes + [UInt8(ascii: "_")] + Base64.url.encode(random.bytes(32))
    }

    /// Checks the form of the wanted key, and makes it under a new id with a new secret.
    private func makeKey(_ wanted: WantedKey, now: Timestamp) throws -> (key: ApiKey, secret: Secret) {
        try wanted.quotas?.check()
        let grant = try Grant(role: wanted.role, scope: wanted.scope)
        try Values.checkDisplayName(wanted.displayName, limits: resources.limits)
        guard !wanted.exportsPasswordHashes || wanted.role.rawValue >= Role.tenantAdmin.rawValue else {
            throw Failure.invalid(
                .invalidRole, field: "role", "must be tenant-admin or project-admin to export password hashes")
        }
        try wanted.restrictions.check(limits: resources.limits, now: now)
        let id = resources.random.alphanumeric(Self.idByteCount)
        var key = ApiKey(
            apiKeyID: id, role: grant.role, scope: grant.scope, displayName: wanted.displayName,
            trustedEndUserIP: wanted.trustsEndUserIP, createdAtMicros: now.microseconds, quotas: wanted.quotas)
        key.exportPasswordHashes = wanted.exportsPasswordHashes
        key.expiresAtMicros = wanted.restrictions.expiresAtMicros ?? 0
        key.allowedAddresses = wanted.restrictions.allowedAddresses ?? []
        return (key, Secret(Self.secret(of: id, random: resources.random)))
    }
}

extension StoredApiKey {
    /// The record of a new key, which has the hash of its secret and not the secret.
    fileprivate init(_ key: ApiKey, secret: Secret, quotaOwner: QuotaHolder? = nil) {
        self.init(
            apiKey: key, secretHash: secret.withBytes { Digest.sha256($0) },
            quotaOwnerRole: quotaOwner?.role ?? .unspecified, quotaOwnerQuotas: quotaOwner?.quotas)
    }
}

extension ReadTransaction {
    /// API keys in the order of their ids, after `last`.
    public func apiKeys(after last: Text?, limit: Int) throws -> [ApiKey] {
        var keys: [ApiKey] = []
        try scan(Tables.apiKeys, from: last.map { .after(TextKey($0)) } ?? .first, limit: limit) { row in
            if let key = try row.record.apiKey { keys.append(key) }
            return true
        }
        return keys
    }

    /// API_KEY_NOT_FOUND, also for a key of a deleted tenant.
    func storedAPIKey(_ id: Text) throws -> (stored: StoredApiKey, key: ApiKey) {
        guard let stored = try get(Tables.apiKeys, TextKey(id)), let key = stored.apiKey,
            try !isOfDeletedTenant(key.scope)
        else { throw Failure.apiKeyNotFound }
        return (stored, key)
    }
}
