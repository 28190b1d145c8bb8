public import Base
import Crypto
import JSON
import Synchronization

/// What a genuine ID token says. Whether it is revoked is the caller's question: `uid`, `sessionID`, `generation`.
public final class VerifiedToken: Sendable {
    public let uid: Text
    public let tenantID: Text
    public let sessionID: [UInt8]
    public let generation: Int64
    public let authTime: Timestamp
    public let issuedAt: Timestamp
    public let expiresAt: Timestamp
    public let signInProvider: Text
    public let payload: [UInt8]
    let keyID: Text

    init?(payload: [UInt8], keyID: Text, issuer: Text, audience: Text) {
        guard let claims = try? JSONValue(parsing: payload), case .object = claims,
            claims["iss"]?.text == issuer, claims["aud"]?.text == audience,
            let uid = claims["sub"]?.text, claims["user_id"]?.text == uid,
            let issuedAt = claims["iat"]?.integer, let expiresAt = claims["exp"]?.integer,
            let authTime = claims["auth_time"]?.integer, let generation = claims["gen"]?.integer,
            let sessionID = claims["sid"]?.text.flatMap({ Hex.decode($0.bytes) }), sessionID.count == 16,
            let firebase = claims["firebase"], let signInProvider = firebase["sign_in_provider"]?.text
        else { return nil }
        var tenantID = Text.empty
        if let tenant = firebase["tenant"] {
            guard let name = tenant.text else { return nil }
            tenantID = name
        }
        self.uid = uid
        self.tenantID = tenantID
        self.sessionID = sessionID
        self.generation = generation
        self.authTime = Timestamp(seconds: authTime)
        self.issuedAt = Timestamp(seconds: issuedAt)
        self.expiresAt = Timestamp(seconds: expiresAt)
        self.signInProvider = signInProvider
        self.payload = payload
        self.keyID = keyID
    }
}

/// Why a token was not accepted.
public enum TokenError: Error, Sendable, Equatable {
    case invalid
    case expired
}

/// Verifies ID tokens: form, type, key, algorithm, signature, issuer, audience, times. No input or output, no waiting.
///
/// The algorithm is the key's, never the header's choice. A token that was verified before is found by a keyed hash
/// of all its bytes, so that a repeated one costs no signature check; times and the key's retirement are checked
/// every time. May be called on any thread.
public final class TokenVerifier: Sendable {
    private let keys: PublishedKeySet
    private let issuer: Text
    private let audience: Text
    private let limits: Limits
    private let cache: VerifiedTokenCache

    public init(keys: PublishedKeySet, issuer: Text, audience: Text, limits: Limits, random: RandomSource) {
        self.keys = keys
        self.issuer = issuer
        self.audience = audience
        self.limits = limits
        self.cache = VerifiedTokenCache(random: random)
    }

    public func verify(_ token: [UInt8], now: Timestamp) throws(TokenError) -> VerifiedToken {
        guard token.count <= limits.tokenMax else { throw .invalid }
        let keySet = keys.current
        let fingerprint = cache.fingerprint(of: token)
        if let known = cache.find(fingerprint), keySet.entry(id: known.keyID, at: now) != nil {
            return try checkTimes(known, now: now)
        }
        guard let jwt = JWT(token, byteCountMax: limits.tokenMax), jwt.type == "JWT",
            let keyID = jwt.keyID, let entry = keySet.entry(id: keyID, at: now),
            Text(entry.key.algorithm.rawValue) == jwt.algorithm,
            entry.key.publicKey.verify(signature: jwt.signature, over: Array(jwt.signedBytes)),
            let verified = VerifiedToken(payload: jwt.payload, keyID: keyID, issuer: issuer, audience: audience)
        else { throw .invalid }
        _ = try checkTimes(verified, now: now)
        cache.insert(verified, under: fingerprint)
        return verified
    }

    private func checkTimes(_ token: VerifiedToken, now: Timestamp) throws(TokenError) -> VerifiedToken {
        // Our own clock signed it: no leeway for expiry; a step backwards of less than a minute is no forgery.
        guard now < token.expiresAt else { throw .expired }
        guard token.issuedAt <= now + .seconds(60) else { throw .invalid }
        return token
    }
}

/// A bounded map from a token's keyed hash to what it says, in shards so that loops do not wait for each other.
private final class VerifiedTokenCache: Sendable {
    struct Fingerprint: Hashable {
        let low: UInt64
        let high: UInt64
    }

    private final class Shard: Sendable {
        let tokens = Mutex<[Fingerprint: VerifiedToken]>([:])
    }

    private let shards: [Shard]
    private let key: MACKey
    private static let tokensPerShardMax = 512

    init(random: RandomSource) {
        shards = (0..<16).map { _ in Shard() }
        key = MACKey(Secret(random.bytes(MACKey.keyByteCount)))
    }

    func fingerprint(of token: [UInt8]) -> Fingerprint {
        withUnsafeTemporaryAllocation(byteCount: MACKey.tagByteCount, alignment: 8) { tag in
            token.withUnsafeBytes { key.writeTag(of: $0, at: UnsafeRawBufferPointer(start: nil, count: 0), into: tag) }
            return Fingerprint(low: tag.load(as: UInt64.self), high: tag.load(fromByteOffset: 8, as: UInt64.self))
        }
    }

    func find(_ fingerprint: Fingerprint) -> VerifiedToken? {
        shards[Int(fingerprint.low & 15)].tokens.withLock { $0[fingerprint] }
    }

    /// A full shard is emptied: cheaper than order, and a token comes back with its next use.
    func insert(_ token: VerifiedToken, under fingerprint: Fingerprint) {
        shards[Int(fingerprint.low & 15)].tokens.withLock { tokens in
            if tokens.count >= Self.tokensPerShardMax { tokens.removeAll(keepingCapacity: true) }
            tokens[fingerprint] = token
        }
    }
}
