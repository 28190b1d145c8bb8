public import Base
import Crypto
public import Messages
public import Store
import Synchronization

/// The API keys: makes, lists, revokes and recognises them. Only their hashes are stored.
///
/// A key reads `pk_<12 characters: its id>_<43 characters: 32 random bytes>`. Looking one up costs a read and a
/// SHA-256; connections remember the result while `version` stays.
public final class CallerDirectory: Sendable {
    private let resources: Resources
    private let versionCounter = Atomic<UInt64>(1)
    private static let prefix = [UInt8]("Bearer ".utf8)
    private static let keyPrefix = [UInt8]("pk_".utf8)
    private static let idByteCount = 12

    public init(resources: Resources) { self.resources = resources }

    /// Changes before the answer to every creation and revocation.
    public var version: UInt64 { versionCounter.load(ordering: .acquiring) }

    /// The caller behind `Bearer pk_…`, or nil.
    public func caller(
        authorization: UnsafeRawBufferPointer, in transaction: borrowing ReadTransaction
    ) throws -> Caller? {
        guard authorization.count <= 256, authorization.starts(with: Self.prefix) else { return nil }
        let key = [UInt8](authorization.dropFirst(Self.prefix.count))
        let idStart = Self.keyPrefix.count
        let idEnd = idStart + Self.idByteCount
        guard key.count > idEnd + 1, key.starts(with: Self.keyPrefix), key[idEnd] == UInt8(ascii: "_"),
            let id = Text(validating: Array(key[idStart..<idEnd])),
            let stored = try transaction.get(Tables.apiKeys, TextKey(id)), let apiKey = stored.apiKey,
            constantTimeEqual(stored.secretHash, Digest.sha256(key)), apiKey.revokedAtMicros == 0
        else { return nil }
        return Caller(apiKey)
    }

    /// Makes a key. INVALID_ROLE, INVALID_SCOPE, TENANT_NOT_FOUND.
    public func create(
        role: Role, scope: Scope?, displayName: Text, trustsEndUserIP: Bool, validateOnly: Bool, origin: Origin,
        event: EventKind = .apiKeyCreated
    ) async throws -> (key: ApiKey, secret: Secret) {
        let request = try makeKey(
            role: role, scope: scope, displayName: displayName, trustsEndUserIP: trustsEndUserIP)
        let now = resources.clock.now()
        let key = request.stored.apiKey ?? ApiKey()
        try await resources.store.write { transaction in
            if case .tenantID(let tenantID) = key.scope?.tenants { _ = try transaction.reading.liveTenant(tenantID) }
            if validateOnly { return }
            try transaction.onceOnly(origin, now: now) {
                try transaction.put(Tables.apiKeys, TextKey(key.apiKeyID), request.stored)
                try transaction.appendEvent(event, tenantID: .empty, origin: origin, detail: key.apiKeyID, now: now)
            }
        }
        versionCounter.add(1, ordering: .acquiringAndReleasing)
        return (key, request.secret)
    }

    /// Makes the first project-admin key of an empty store; nil if there are keys.
    public func createFirstAdmin() async throws -> Secret? {
        let isEmpty = try resources.store.read { try $0.count(Tables.apiKeys) == 0 }
        guard isEmpty else { return nil }
        return try await create(
            role: .projectAdmin, scope: Scope(tenants: .all(true)), displayName: "first admin key",
            trustsEndUserIP: false, validateOnly: false, origin: .server
        ).secret
    }

    /// Revokes a key: it is refused from the next request on. API_KEY_NOT_FOUND, LAST_ADMIN_KEY.
    public func revoke(id: Text, validateOnly: Bool, origin: Origin) async throws -> ApiKey {
        let now = resources.clock.now()
        let key = try await resources.store.write { transaction in
            guard var stored = try transaction.get(Tables.apiKeys, TextKey(id)), var key = stored.apiKey else {
                throw Failure(.notFound, "API_KEY_NOT_FOUND", "There is no API key with this id.")
            }
            guard key.revokedAtMicros == 0 else { return key }
            if key.role == .projectAdmin {
                let others = try transaction.reading.apiKeys(after: nil, limit: .max).filter {
                    $0.role == .projectAdmin && $0.revokedAtMicros == 0 && $0.apiKeyID != id
                }
                guard !others.isEmpty else {
                    throw Failure(
                        .failedPrecondition, "LAST_ADMIN_KEY",
                        "This is the last project-admin key; make another one before you revoke it.")
                }
            }
            if validateOnly { return key }
            key.revokedAtMicros = now.microseconds
            stored.apiKey = key
            try transaction.put(Tables.apiKeys, TextKey(id), stored)
            try transaction.appendEvent(.apiKeyRevoked, tenantID: .empty, origin: origin, detail: id, now: now)
            return key
        }
        versionCounter.add(1, ordering: .acquiringAndReleasing)
        return key
    }

    private func makeKey(
        role: Role, scope: Scope?, displayName: Text, trustsEndUserIP: Bool
    ) throws -> (stored: StoredApiKey, secret: Secret) {
        guard [.verifier, .app, .tenantAdmin, .projectAdmin].contains(role) else {
            throw Failure.invalid("INVALID_ROLE", field: "role", "must be verifier, app, tenant-admin or project-admin")
        }
        guard let tenants = scope?.tenants, tenants != .all(false) else {
            throw Failure.invalid("INVALID_SCOPE", field: "scope", "must be all tenants or one tenant")
        }
        guard role != .projectAdmin || tenants == .all(true) else {
            throw Failure.invalid("INVALID_SCOPE", field: "scope", "a project admin's scope is all tenants")
        }
        try Values.checkDisplayName(displayName, limits: resources.limits)
        let id = resources.random.alphanumeric(Self.idByteCount)
        let secret = Self.keyPrefix + id.bytes + [UInt8(ascii: "_")] + Base64.url.encode(resources.random.bytes(32))
        let key = ApiKey(
            apiKeyID: id, role: role, scope: Scope(tenants: tenants), displayName: displayName,
            trustedEndUserIP: trustsEndUserIP, createdAtMicros: resources.clock.now().microseconds)
        return (StoredApiKey(apiKey: key, secretHash: Digest.sha256(secret)), Secret(secret))
    }
}

extension ReadTransaction {
    /// API keys in the order of their ids, behind `last`.
    public func apiKeys(after last: Text?, limit: Int) throws -> [ApiKey] {
        var keys: [ApiKey] = []
        let start = last.map { ScanStart.after($0.bytes) } ?? .first
        try scan(Tables.apiKeys, from: start, limit: limit) { _, value in
            if let key = try StoredApiKey(decoding: value).apiKey { keys.append(key) }
            return true
        }
        return keys
    }
}
