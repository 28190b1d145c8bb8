public import Base
import Crypto
import JSON

/// The claims of a genuine ID token. The caller checks whether the token is revoked: `uid`, `sessionID`, `generation`.
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
    package let keyID: Text

    package init?(payload: [UInt8], keyID: Text, issuer: Text, audience: Text) {
        guard let claims = try? JSONValue(parsing: payload), case .object = claims,
            claims.member("iss")?.text == issuer, claims.member("aud")?.text == audience,
            let uid = claims.member("sub")?.text, claims.member("user_id")?.text == uid,
            let issuedAt = claims.member("iat")?.integer, let expiresAt = claims.member("exp")?.integer,
            let authTime = claims.member("auth_time")?.integer, let generation = claims.member("gen")?.integer,
            let sessionID = claims.member("sid")?.text.flatMap({ Hex.decode($0.bytes) }), sessionID.count == 16,
            let firebase = claims.member("firebase"),
            let signInProvider = firebase.member("sign_in_provider")?.text
        else { return nil }
        var tenantID = Text.empty
        if let tenant = firebase.member("tenant") {
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

/// The reason why a token was not accepted.
public enum TokenError: Error, Sendable, Equatable {
    case invalid
    case expired
}

/// Verifies ID tokens: form, type, key, algorithm, signature, issuer, audience, times. No input or output, no waiting.
///
/// The header has to be, byte for byte, the one that a published key's tokens are made with: nothing in it is read, and
/// the algorithm is the key's own. A token that was verified before is found by a keyed hash of its bytes, so that a
/// repeated one costs no signature check; times and the key's retirement are checked every time. May be called on any
/// thread.
public final class IssuedTokenVerifier: Sendable {
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

    /// Verifies a token. With `allowsExpired` an expired token is accepted, too: only for operations that harm nobody
    /// but the token's owner.
    public func verify(
        _ token: [UInt8], now: Timestamp, allowsExpired: Bool = false
    ) throws(TokenError) -> VerifiedToken {
        guard token.count <= limits.tokenMax else { throw .invalid }
        let keySet = keys.current
        let fingerprint = cache.fingerprint(of: token)
        if let known = cache.find(fingerprint), keySet.isPublished(id: known.keyID, at: now) {
            return try checkTimes(known, now: now, allowsExpired: allowsExpired)
        }
        guard let entry = keySet.entry(of: token, at: now),
            let payload = Self.signedPayload(of: token, entry),
            let verified = VerifiedToken(payload: payload, keyID: entry.id, issuer: issuer, audience: audience)
        else { throw .invalid }
        _ = try checkTimes(verified, now: now, allowsExpired: allowsExpired)
        cache.insert(verified, under: fingerprint)
        return verified
    }

    /// The bytes between the header and the signature, if the signature is the key's.
    private static func signedPayload(of token: [UInt8], _ entry: KeySet.Entry) -> [UInt8]? {
        let payloadStart = entry.tokenPrefix.count
        guard let payloadEnd = token.lastIndex(of: UInt8(ascii: ".")), payloadEnd >= payloadStart,
            let signature = Base64.url.decode(token[(payloadEnd + 1)...]),
            token.withUnsafeBytes({ token in
                let signedBytes = UnsafeRawBufferPointer(rebasing: token[..<payloadEnd])
                return signature.withUnsafeBytes { entry.publicKey.verify(signature: $0, over: signedBytes) }
            })
        else { return nil }
        return Base64.url.decode(token[payloadStart..<payloadEnd])
    }

    private func checkTimes(
        _ token: VerifiedToken, now: Timestamp, allowsExpired: Bool
    ) throws(TokenError) -> VerifiedToken {
        // Our own clock signed it: no leeway for expiry; a step backwards of less than a minute is no forgery.
        guard allowsExpired || now < token.expiresAt else { throw .expired }
        guard token.issuedAt <= now + .seconds(60) else { throw .invalid }
        return token
    }
}
