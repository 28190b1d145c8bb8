public import Base
public import Crypto
public import JSON

/// A JWT that a service account has signed for itself: `iss` and `sub` are its email (RFC 7523 §3). Custom tokens and
/// caller JWTs are such JWTs.
///
/// A value of this type is well formed, and nothing more. Its user finds the account's key, calls `isSigned(by:)` and
/// `checkTimes(now:)`, and compares `type` and `audience` with the one kind that it accepts.
public struct ServiceAccountJWT: Sendable {
    /// The longest time from `iat` to `exp`.
    public static let lifetimeMax = Duration.hours(1)
    /// How far the signer's clock may be ahead of ours. It may not be behind: an expired token is expired.
    static let leeway = Duration.seconds(60)

    /// The header's `typ`.
    public let type: Text?
    /// The header's `kid`; some Admin SDKs write none.
    public let keyID: Text?
    /// The account that the JWT claims to come from.
    public let email: Text
    /// The audience. A list of audiences is refused.
    public let audience: Text
    public let issuedAt: Timestamp
    public let expiresAt: Timestamp
    public let claims: JSONValue
    private let algorithm: Text
    private let signedBytes: [UInt8]
    private let signature: [UInt8]

    /// Nil for a token that is no such JWT: see `JWT`; also if `iss` ≠ `sub`, or if `aud`, `iat`, `exp` or `nbf` has
    /// another type.
    public init?(_ token: [UInt8], limits: Limits) {
        guard let jwt = JWT(token, byteCountMax: limits.tokenMax),
            let claims = try? JSONValue(parsing: jwt.payload), case .object = claims,
            let email = claims["iss"]?.text, !email.isEmpty, claims["sub"]?.text == email,
            let audience = claims["aud"]?.text, let issuedAt = claims["iat"]?.integer,
            let expiresAt = claims["exp"]?.integer
        else { return nil }
        if claims["nbf"] != nil && claims["nbf"]?.integer == nil { return nil }
        self.type = jwt.type
        self.keyID = jwt.keyID
        self.email = email
        self.audience = audience
        self.issuedAt = Timestamp(seconds: issuedAt)
        self.expiresAt = Timestamp(seconds: expiresAt)
        self.claims = claims
        self.algorithm = jwt.algorithm
        self.signedBytes = Array(jwt.signedBytes)
        self.signature = jwt.signature
    }

    /// The key decides the algorithm, never the header.
    public func isSigned(by key: VerificationKey) -> Bool {
        Text(key.algorithm.rawValue) == algorithm && key.verify(signature: signature, over: signedBytes)
    }

    /// `expired`, or `invalid`: not yet valid, or valid for longer than `lifetimeMax`.
    public func checkTimes(now: Timestamp) throws(TokenError) {
        let validFrom = claims["nbf"]?.integer.map { Timestamp(seconds: $0) } ?? issuedAt
        guard max(issuedAt, validFrom) <= now + Self.leeway, issuedAt < expiresAt,
            expiresAt - issuedAt <= Self.lifetimeMax
        else { throw .invalid }
        guard now < expiresAt else { throw .expired }
    }

    /// A JWT of this payload. RS256 takes 250 µs, so use the crypto pool.
    public static func sign(_ payload: [UInt8], type: Text = "JWT", with key: SigningKey) -> [UInt8] {
        var header = JSONWriter()
        header.beginObject()
        header.member("alg", text: Text(key.algorithm.rawValue))
        header.member("kid", text: key.publicKey.keyID)
        header.member("typ", text: type)
        header.endObject()
        let signedBytes = Base64.url.encode(header.bytes) + [UInt8(ascii: ".")] + Base64.url.encode(payload)
        return signedBytes + [UInt8(ascii: ".")] + Base64.url.encode(key.sign(signedBytes))
    }
}
