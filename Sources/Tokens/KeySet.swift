public import Base
public import Crypto
import JSON

/// The public parts of the project's signing keys at one moment: immutable, published whole by `TokenSigner`, read
/// without waiting.
public final class KeySet: Sendable {
    /// One key and its times.
    public struct Entry: Sendable {
        public let id: Text
        public let publicKey: VerificationKey
        public let times: SigningKeyTimes
        /// base64url of `{"alg":…,"kid":…,"typ":"JWT"}` and a period: the beginning of every token of this key.
        package let tokenPrefix: [UInt8]

        /// A key with which somebody else signs; `number` is its place among the others.
        public init(id: Text, publicKey: VerificationKey, number: Int64) {
            let times = SigningKeyTimes(sequence: number, createdAt: .zero, signsFrom: .zero)
            self.init(id: id, publicKey: publicKey, times: times)
        }

        public init(id: Text, publicKey: VerificationKey, times: SigningKeyTimes) {
            self.id = id
            self.publicKey = publicKey
            self.times = times
            self.tokenPrefix = Self.tokenPrefix(id, publicKey.algorithm)
        }

        static func tokenPrefix(_ id: Text, _ algorithm: SigningAlgorithm) -> [UInt8] {
            var json = JSONWriter()
            json.beginObject()
            json.member("alg", text: Text(algorithm.rawValue))
            json.member("kid", text: id)
            json.member("typ", text: "JWT")
            json.endObject()
            return Base64.url.encode(json.bytes) + [UInt8(ascii: ".")]
        }

        package func isRetired(at now: Timestamp) -> Bool { times.isRetired(at: now) }

        fileprivate func begins(_ token: [UInt8]) -> Bool {
            tokenPrefix.withUnsafeBytes { prefix in
                token.withUnsafeBytes { token in
                    UnsafeRawBufferPointer(rebasing: token.prefix(prefix.count)).hasSameBytes(as: prefix)
                }
            }
        }

        /// This key, in memory that no other entry refers to.
        fileprivate func copied() -> Entry {
            Entry(id: Text(unchecked: id.bytes.copied()), publicKey: publicKey.copied(), times: times)
        }
    }

    /// The most keys that verifiers read, this package's and the Python package's. The server makes no more.
    package static let countMax = 64

    /// Newest first, in the order in which they were made.
    public let entries: [Entry]
    /// The ids of keys that were revoked lately. They are not published: whoever verifies with the JWKS knows no such
    /// key. They tell a revoked key from a key that another node has just made.
    package let revokedIDs: Set<Text>
    /// The set as JSON (RFC 7517 §5).
    public let jwks: [UInt8]

    public init(entries: [Entry], revokedIDs: Set<Text> = []) {
        self.entries = entries.sorted { $0.times.sequence > $1.times.sequence }
        self.revokedIDs = revokedIDs
        self.jwks = Self.jwks(of: self.entries)
    }

    /// The newest key whose time to sign has come; if there is none, the oldest key. `hasSigned` is the number of the
    /// newest key known to have signed.
    ///
    /// A key that was overtaken while it waited for its time never signs, because its retirement would cut its tokens
    /// short.
    public func signingEntry(at now: Timestamp, hasSigned: Int64 = .min) -> Entry? {
        SigningKeyTimes.signing(in: entries, at: now, hasSigned: hasSigned, \.times)
    }

    // Searched one by one: there are only as many keys as were made in the last hours.

    /// A key to verify with, unless it is retired.
    public func entry(id: Text, at now: Timestamp) -> Entry? {
        entries.first { $0.id == id && !$0.isRetired(at: now) }
    }

    /// The key whose tokens begin as `token` does, unless it is retired; the signature is still to be checked.
    package func entry(of token: [UInt8], at now: Timestamp) -> Entry? {
        entries.first { !$0.isRetired(at: now) && $0.begins(token) }
    }

    /// These keys, in memory that no other set refers to.
    func copied() -> KeySet { KeySet(entries: entries.map { $0.copied() }, revokedIDs: revokedIDs) }

    /// Whether both sets have the same keys with the same times, and the same revoked keys.
    func hasSameKeys(as other: KeySet) -> Bool {
        jwks == other.jwks && entries.map(\.times) == other.entries.map(\.times) && revokedIDs == other.revokedIDs
    }

    /// The keys of a JWK set as this server publishes them (RFC 7517). Keys that are not sound or have no id are left
    /// out. Nil if it is no JWK set. RSA keys take 2 ms each.
    public convenience init?(parsing jwks: [UInt8]) {
        guard let keys = (try? JSONValue(parsing: jwks))?["keys"]?.array, keys.count <= Self.countMax else {
            return nil
        }
        self.init(
            entries: keys.enumerated().compactMap { index, json in
                guard let id = json["kid"]?.text, let jwk = try? PublicJWK(member: { json[$0]?.text }),
                    json["alg"]?.text == Text(jwk.algorithm.rawValue), let key = try? VerificationKey(jwk: jwk)
                else { return nil }
                return Entry(id: id, publicKey: key, number: Int64(keys.count - index))
            })
    }

    private static func jwks(of entries: [Entry]) -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.name("keys")
        json.beginArray()
        for entry in entries {
            json.beginObject()
            for member in entry.publicKey.jwk.members { json.member(member.name, text: member.value) }
            json.member("alg", text: Text(entry.publicKey.algorithm.rawValue))
            json.member("kid", text: entry.id)
            json.member("use", text: "sig")
            json.endObject()
        }
        json.endArray()
        json.endObject()
        return json.bytes
    }
}
