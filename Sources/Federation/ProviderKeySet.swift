import Base
import Crypto
import JSON

/// The keys of a provider that its ID tokens may be signed with, from its JWK set (RFC 7517).
///
/// Left out: symmetric keys, keys for encryption, keys for algorithms other than RS256, ES256 and EdDSA, and keys that
/// must not be used (RSA below 2048 bits, points off the curve, …).
struct ProviderKeySet: Sendable {
    private struct Entry: Sendable {
        let id: Text
        let key: VerificationKey
        let algorithm: Text
        /// The only issuer it signs for, `{tenantid}` being the user's directory; empty = any of this set.
        let issuer: Text
    }

    private let entries: [Entry]

    static let keysMax = 64

    /// Nil when it is no JWK set, or one with too many keys. RSA keys take 2 ms each: not on a loop.
    init?(parsing body: [UInt8]) {
        guard let keys = (try? JSONValue(parsing: body))?["keys"]?.array, keys.count <= Self.keysMax else { return nil }
        self.entries = keys.compactMap(Self.entry)
    }

    var count: Int { entries.count }

    func has(_ id: Text) -> Bool { id.isEmpty ? !entries.isEmpty : entries.contains { $0.id == id } }

    /// Keys with this id (all for a token without one) whose own algorithm is the one the token names, and that may
    /// sign for its issuer.
    func candidates(id: Text, algorithm: Text, maySignFor: (Text) -> Bool) -> [VerificationKey] {
        entries.filter { entry in
            (id.isEmpty || entry.id == id) && entry.algorithm == algorithm
                && (entry.issuer.isEmpty || maySignFor(entry.issuer))
        }.map(\.key)
    }

    private static func entry(_ json: JSONValue) -> Entry? {
        guard json.object != nil, json["use"] == nil || json["use"] == "sig" else { return nil }
        if let operations = json["key_ops"] {
            guard operations.array?.contains("verify") == true else { return nil }
        }
        guard let jwk = try? PublicJWK(member: { json[$0]?.text }) else { return nil }
        if let algorithm = json["alg"] {
            guard algorithm.text == Text(jwk.algorithm.rawValue) else { return nil }
        }
        guard let key = try? VerificationKey(jwk: jwk) else { return nil }
        guard let id = (json["kid"] ?? "").text, let issuer = (json["issuer"] ?? "").text else { return nil }
        return Entry(id: id, key: key, algorithm: Text(key.algorithm.rawValue), issuer: issuer)
    }
}
