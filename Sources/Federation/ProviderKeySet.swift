import Base
import Crypto
import JSON
import Synchronization

/// The keys with which a provider may sign ID tokens, from its JWK set (RFC 7517).
///
/// Left out: symmetric keys, keys for encryption, keys for algorithms other than RS256, ES256 and EdDSA, RSA keys
/// below 2048 or above 4096 bits, and keys whose id or issuer is too long. The other keys are checked when a token
/// needs them: a set of 64 keys must not cost 64 checks. The result of a check is kept. Any thread.
final class ProviderKeySet: Sendable {
    static let keyIDByteCountMax = 256

    private struct Entry: Sendable {
        let id: Text
        let jwk: PublicJWK
        let algorithm: Text
        /// The only issuer for which the key signs. Nil = any issuer of this set.
        let issuer: ProviderKeyIssuer?
    }

    private struct Checks: Sendable {
        /// The checked keys, by their place in `entries`. Nil for a key that must not be used.
        var results: [Int: VerificationKey?] = [:]
        /// For each tenant with a check under way, the callers that wait for it.
        var waiters: [Text: WaitingCallers<Void>] = [:]
    }

    /// The next step of a caller whose keys are not checked yet.
    private enum Turn {
        case check
        case wait(Promise<Void>)
        case refused
    }

    private let entries: [Entry]
    private let checks = Mutex(Checks())

    static let keysMax = 64
    /// The issuers of tokens are URLs, and so are those of keys. Each token is compared with them on an event loop.
    static let issuerByteCountMax = HTTPURL.byteCountMax
    /// How many keys are tried for one token: keys with its id, or any keys if it names none. OpenID Connect Core §10.1
    /// requires an id if a set has several keys.
    static let candidatesMax = 4

    /// Returns nil for a body that is not a JWK set, or has too many keys.
    init?(parsing body: [UInt8]) {
        guard let keys = (try? JSONValue(parsing: body))?["keys"]?.array, keys.count <= Self.keysMax else { return nil }
        self.entries = keys.compactMap(Self.entry)
    }

    var count: Int { entries.count }

    func has(_ id: Text) -> Bool { id.isEmpty ? !entries.isEmpty : entries.contains { $0.id == id } }

    /// The places of the keys with this id (any id for a token without one) whose own algorithm is the one that the
    /// token names, and that may sign for its issuer. Empty if there are more than `candidatesMax`.
    func candidates(id: Text, algorithm: Text, maySignFor: (ProviderKeyIssuer) -> Bool) -> [Int] {
        let found = entries.indices.filter { index in
            let entry = entries[index]
            return (id.isEmpty || entry.id == id) && entry.algorithm == algorithm
                && (entry.issuer.map(maySignFor) ?? true)
        }
        return found.count <= Self.candidatesMax ? found : []
    }

    /// Whether all keys at these places are checked already.
    private func areChecked(_ places: [Int]) -> Bool {
        checks.withLock { checks in places.allSatisfy { checks.results[$0] != nil } }
    }

    /// Runs `body`, which calls `check`, unless the keys at these places are checked already.
    ///
    /// One body of a tenant runs at a time. Its callers that come meanwhile wait for it, and look again. They do not
    /// wait for the check of another tenant, which may have to wait for a thread for longer than their own has to.
    /// OVERLOADED if too many callers of `tenant` wait, and the errors of `body`.
    func checkOnce(_ places: [Int], tenant: Text, _ body: () async throws -> Void) async throws {
        while !areChecked(places) {
            switch checks.withLock({ Self.turn(&$0, tenant) }) {
            case .wait(let promise): try await promise.cancellableValue()
            case .refused: throw FederationError.overloaded
            case .check:
                defer { endCheck(of: tenant) }
                try await body()
            }
        }
    }

    private static func turn(_ checks: inout Checks, _ tenant: Text) -> Turn {
        guard checks.waiters[tenant] != nil else {
            checks.waiters[tenant] = WaitingCallers()
            return .check
        }
        guard let promise = checks.waiters[tenant]?.add(tenant) else { return .refused }
        return .wait(promise)
    }

    private func endCheck(of tenant: Text) {
        let waiters = checks.withLock { $0.waiters.removeValue(forKey: tenant) }
        for promise in waiters?.promises ?? [] { promise.succeed(()) }
    }

    /// Checks the keys at these places that were not checked yet, and returns how many there were. Each takes up to a
    /// millisecond, so do not call it on a loop.
    func check(_ places: [Int]) -> Int {
        var count = 0
        for place in places where !areChecked([place]) {
            let key = try? VerificationKey(jwk: entries[place].jwk, check: .quick)
            checks.withLock { $0.results[place] = .some(key) }
            count += 1
        }
        return count
    }

    /// The keys at these places that were checked and may be used.
    func keys(_ places: [Int]) -> [VerificationKey] {
        checks.withLock { checks in places.compactMap { checks.results[$0] ?? nil } }
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
        guard let id = (json["kid"] ?? "").text, id.byteCount <= Self.keyIDByteCountMax,
            let issuer = (json["issuer"] ?? "").text, issuer.byteCount <= issuerByteCountMax
        else { return nil }
        return Entry(
            id: id, jwk: jwk, algorithm: Text(jwk.algorithm.rawValue),
            issuer: issuer.isEmpty ? nil : ProviderKeyIssuer(issuer))
    }
}
