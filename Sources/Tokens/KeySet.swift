public import Base
public import Crypto
import JSON
import Synchronization

/// The project's signing keys at one moment: immutable, published whole by `TokenSigner`, read without waiting.
public final class KeySet: Sendable {
    /// One key and the times it lives by.
    public struct Entry: Sendable {
        public let id: Text
        /// Nil for who only verifies.
        public let key: SigningKey?
        public let publicKey: VerificationKey
        public let createdAt: Timestamp
        /// Before this it is only published, so that verifiers have fetched it by the time it signs.
        public let signsFrom: Timestamp
        /// From here on it is gone from the JWKS; nil while it is the newest.
        public let retiresAt: Timestamp?
        /// base64url of `{"alg":…,"kid":…,"typ":"JWT"}` and a period: what every token of this key begins with.
        package let tokenPrefix: [UInt8]

        public init(id: Text, key: SigningKey, createdAt: Timestamp, signsFrom: Timestamp, retiresAt: Timestamp?) {
            self.init(id: id, key, key.publicKey, createdAt: createdAt, signsFrom: signsFrom, retiresAt: retiresAt)
        }

        /// A key that somebody else signs with.
        public init(id: Text, publicKey: VerificationKey) {
            self.init(id: id, nil, publicKey, createdAt: .zero, signsFrom: .zero, retiresAt: nil)
        }

        private init(
            id: Text, _ key: SigningKey?, _ publicKey: VerificationKey, createdAt: Timestamp, signsFrom: Timestamp,
            retiresAt: Timestamp?
        ) {
            self.id = id
            self.key = key
            self.publicKey = publicKey
            self.createdAt = createdAt
            self.signsFrom = signsFrom
            self.retiresAt = retiresAt
            var json = JSONWriter()
            json.beginObject()
            json.member("alg", text: Text(publicKey.algorithm.rawValue))
            json.member("kid", text: id)
            json.member("typ", text: "JWT")
            json.endObject()
            self.tokenPrefix = Base64.url.encode(json.bytes) + [UInt8(ascii: ".")]
        }

        package func isRetired(at now: Timestamp) -> Bool { retiresAt.map { $0 <= now } ?? false }
    }

    /// The key that nothing replaced yet, then the others by their age: newest first.
    public let entries: [Entry]
    /// RFC 7517 §5.
    public let jwks: [UInt8]

    public init(entries: [Entry]) {
        self.entries = entries.sorted { left, right in
            if (left.retiresAt == nil) != (right.retiresAt == nil) { return left.retiresAt == nil }
            return (left.createdAt, left.signsFrom) > (right.createdAt, right.signsFrom)
        }
        self.jwks = Self.jwks(of: self.entries)
    }

    /// The newest key that may sign at `now`; the oldest there is, if a clock went backwards.
    ///
    /// Newest by when it was made, not by when it signs: a key that was overtaken while it waited for its time never
    /// signs, for its retirement would cut its tokens short.
    public func signingEntry(at now: Timestamp) -> Entry? {
        entries.first { $0.signsFrom <= now && !$0.isRetired(at: now) } ?? entries.last
    }

    // Searched one by one: there are as many keys as were made in the last hours.

    /// A key to verify with, unless it is retired.
    public func entry(id: Text, at now: Timestamp) -> Entry? {
        entries.first { $0.id == id && !$0.isRetired(at: now) }
    }

    /// The key whose tokens begin as `token` does, unless it is retired; the signature is still to be checked.
    package func entry(of token: [UInt8], at now: Timestamp) -> Entry? {
        entries.first { !$0.isRetired(at: now) && token.starts(with: $0.tokenPrefix) }
    }

    /// Whether `entry(id:at:)` finds a key, without copying it.
    func isPublished(id: Text, at now: Timestamp) -> Bool {
        entries.contains { $0.id == id && !$0.isRetired(at: now) }
    }

    /// The keys of a JWK set as this server publishes them (RFC 7517); one that is not sound or not named is left out.
    /// Nil when it is no JWK set. RSA keys take 2 ms each.
    public convenience init?(parsing jwks: [UInt8]) {
        guard let keys = (try? JSONValue(parsing: jwks))?["keys"]?.array, keys.count <= Self.parsedKeysMax else {
            return nil
        }
        self.init(
            entries: keys.compactMap { json in
                guard let id = json["kid"]?.text, let jwk = try? PublicJWK(member: { json[$0]?.text }),
                    json["alg"]?.text == Text(jwk.algorithm.rawValue), let key = try? VerificationKey(jwk: jwk)
                else { return nil }
                return Entry(id: id, publicKey: key)
            })
    }

    private static let parsedKeysMax = 64

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

/// Where the present `KeySet` is read: one writer (`TokenSigner`), any number of readers.
public final class PublishedKeySet: Sendable {
    private let storage: Mutex<KeySet>

    public init(_ keySet: KeySet = KeySet(entries: [])) { storage = Mutex(keySet) }

    public var current: KeySet { storage.withLock { $0 } }

    package func publish(_ keySet: KeySet) { storage.withLock { $0 = keySet } }
}
