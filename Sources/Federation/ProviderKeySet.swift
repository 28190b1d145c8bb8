import Base
import Crypto
import JSON
import Synchronization

/// The keys of a provider that its ID tokens may be signed with, from its JWK set (RFC 7517).
///
/// Left out: symmetric keys, keys for encryption, keys for algorithms other than RS256, ES256 and EdDSA, and RSA keys
/// below 2048 or above 4096 bits. The others are checked when a token wants one of them: a set of 64 keys must not cost
/// 64 checks. What a check found is kept. Any thread.
final class ProviderKeySet: Sendable {
    private struct Entry: Sendable {
        let id: Text
        let jwk: PublicJWK
        let algorithm: Text
        /// The only issuer it signs for, `{tenantid}` being the user's directory; empty = any of this set.
        let issuer: Text
    }

    private struct Checks: Sendable {
        /// The keys that were checked, by their place in `entries`. Nil for a key that must not be used.
        var made: [Int: VerificationKey?] = [:]
        /// The callers that wait for the checks under way. Nil: no check is under way.
        var waiters: [Promise<Void>]?
    }

    private let entries: [Entry]
    private let checks = Mutex(Checks())

    static let keysMax = 64
    /// How many keys are tried for one token: of several of its id, or of all where it names none. OpenID Connect Core
    /// §10.1 wants an id where a set has several keys.
    static let candidatesMax = 4

    /// Returns nil for a body that is not a JWK set, or has too many keys.
    init?(parsing body: [UInt8]) {
        guard let keys = (try? JSONValue(parsing: body))?["keys"]?.array, keys.count <= Self.keysMax else { return nil }
        self.entries = keys.compactMap(Self.entry)
    }

    var count: Int { entries.count }

    func has(_ id: Text) -> Bool { id.isEmpty ? !entries.isEmpty : entries.contains { $0.id == id } }

    /// The places of the keys with this id (any for a token without one) whose own algorithm is the one the token
    /// names, and that may sign for its issuer. None when there are more than `candidatesMax`.
    func candidates(id: Text, algorithm: Text, maySignFor: (Text) -> Bool) -> [Int] {
        let found = entries.indices.filter { index in
            let entry = entries[index]
            return (id.isEmpty || entry.id == id) && entry.algorithm == algorithm
                && (entry.issuer.isEmpty || maySignFor(entry.issuer))
        }
        return found.count <= Self.candidatesMax ? found : []
    }

    /// Whether all keys at these places are checked already.
    private func areMade(_ places: [Int]) -> Bool {
        checks.withLock { checks in places.allSatisfy { checks.made[$0] != nil } }
    }

    /// Checks the keys at these places with `check`, which calls `make`, unless they are checked already.
    ///
    /// One check runs at a time. Callers that come meanwhile wait for it, and look again. Throws what `check` throws.
    func checkOnce(_ places: [Int], _ check: () async throws -> Void) async throws {
        while !areMade(places) {
            let other: Promise<Void>? = checks.withLock { checks in
                guard let waiters = checks.waiters else {
                    checks.waiters = []
                    return nil
                }
                let waiter = Promise<Void>()
                checks.waiters = waiters + [waiter]
                return waiter
            }
            if let other {
                try await other.cancellableValue()
                continue
            }
            defer { endCheck() }
            try await check()
        }
    }

    private func endCheck() {
        let waiters = checks.withLock { $0.waiters.take() ?? [] }
        for waiter in waiters { waiter.succeed(()) }
    }

    /// Checks the keys at these places that were not checked yet, and returns how many that were. Each takes up to a
    /// millisecond: not on a loop.
    func make(_ places: [Int]) -> Int {
        var count = 0
        for place in places where !areMade([place]) {
            let key = try? VerificationKey(jwk: entries[place].jwk, check: .quick)
            checks.withLock { $0.made[place] = .some(key) }
            count += 1
        }
        return count
    }

    /// The keys at these places that may be used, of those that were made.
    func keys(_ places: [Int]) -> [VerificationKey] {
        checks.withLock { checks in places.compactMap { checks.made[$0] ?? nil } }
    }

    private static func entry(_ json: JSONValue) -> Entry? {
        guard json.object != nil, json["use"] == nil || json["use"] == "sig" else { return nil }
        if let operations = json["key_ops"] {
            guard operations.array?.contains("verify") == true else { return nil }
        }
        guard let jwk = try? PublicJWK(member: { json[$0]?.text }) else { return nil }
        if case .rsa(let modulus, let exponent) = jwk {
            guard (256...512).contains(modulus.count), exponent.count <= 4 else { return nil }
        }
        if let algorithm = json["alg"] {
            guard algorithm.text == Text(jwk.algorithm.rawValue) else { return nil }
        }
        guard let id = (json["kid"] ?? "").text, let issuer = (json["issuer"] ?? "").text else { return nil }
        return Entry(id: id, jwk: jwk, algorithm: Text(jwk.algorithm.rawValue), issuer: issuer)
    }
}
