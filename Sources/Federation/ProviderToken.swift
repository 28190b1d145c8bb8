import Base
import Crypto
import JSON
import Messages
import Outbound
import Rules
import Tokens

/// A provider's ID token (OpenID Connect Core 1.0 §2), checked as §3.1.3.7 says. Pure.
///
/// The key decides the algorithm, never the header; "none" and HMAC have no key here. `exp`, `iat` and `nbf` may be off
/// by a minute: the provider's clock is not ours.
struct ProviderToken: Sendable {
    let jwt: JWT
    let claims: JSONValue

    static let leeway = Duration.seconds(60)

    /// Splits the token into its parts. Nothing in them is believed yet.
    init(_ token: Secret, byteCountMax: Int) throws(FederationError) {
        let bytes = token.withBytes { [UInt8]($0) }
        let jwt = JWT(
            bytes, byteCountMax: byteCountMax, keyIDByteCountMax: ProviderKeySet.keyIDByteCountMax)
        guard let jwt, let claims = try? JSONValue(parsing: jwt.payload), claims.object != nil else {
            throw .flawed(.malformed)
        }
        guard Self.mayBeIDToken(jwt.type, claims) else { throw .flawed(.malformed) }
        self.jwt = jwt
        self.claims = claims
    }

    /// Whether this is none of the other JWTs that a provider signs with the same keys and often for the same audience.
    ///
    /// A type that ends in "+jwt" names another kind (RFC 8725 §3.11): an access token (`at+jwt`), a logout token. ID
    /// tokens have no such type. Logout tokens and other security events without a type have `events` (RFC 8417 §2.2).
    private static func mayBeIDToken(_ type: Text?, _ claims: JSONValue) -> Bool {
        let isAnotherKind = type?.bytes.lowercasedASCII.suffix(4).elementsEqual("+jwt".utf8) ?? false
        return !isAnotherKind && claims.member("events")?.object == nil
    }

    /// The places of the keys that may have signed it. UNKNOWN_KEY if there is none.
    func candidates(in keys: ProviderKeySet) throws(FederationError) -> [Int] {
        // Microsoft's keys name their issuer: a key of personal accounts signs for no company, and a company's key for
        // no personal account (learn.microsoft.com/entra/identity-platform/access-tokens, "Validate the signing key
        // issuer").
        let issuer = claims.member("iss")?.text
        let directory = claims.member("tid")?.text ?? .empty
        let places = keys.candidates(id: jwt.keyID ?? .empty, algorithm: jwt.algorithm) { keyIssuer in
            issuer.map { keyIssuer.matches($0, directory: directory) } ?? false
        }
        guard !places.isEmpty else { throw .flawed(.unknownKey) }
        return places
    }

    /// UNKNOWN_KEY if none of the candidates may be used, BAD_SIGNATURE.
    func checkSignature(_ candidates: [VerificationKey]) throws(FederationError) {
        guard !candidates.isEmpty else { throw .flawed(.unknownKey) }
        let message = Array(jwt.signedBytes)
        guard candidates.contains(where: { $0.verify(signature: jwt.signature, over: message) }) else {
            throw .flawed(.badSignature)
        }
    }

    /// In order: issuer, audience, times, nonce. `isFromProvider`: whether the token came from the provider itself, for
    /// a code, and not from the application.
    func checkClaims(
        _ configuration: ProviderConfiguration, nonce: Text, isFromProvider: Bool, now: Timestamp
    ) throws(FederationError) {
        guard isIssued(by: configuration) else { throw .flawed(.wrongIssuer) }
        guard isMeant(for: configuration.audiences), wasAskedFor(by: configuration.audiences) else {
            throw .flawed(.wrongAudience)
        }
        guard let expiresAt = Self.time(claims.member("exp")), now < expiresAt + Self.leeway else {
            throw .flawed(.expired)
        }
        guard let issuedAt = Self.time(claims.member("iat")), issuedAt <= now + Self.leeway else {
            throw .flawed(.notYetValid)
        }
        if let notBefore = claims.member("nbf") {
            guard let time = Self.time(notBefore), time <= now + Self.leeway else { throw .flawed(.notYetValid) }
        }
        guard nonce.isEmpty else {
            guard let claim = claims.member("nonce")?.text,
                Self.matches(claim, nonce, mayBeItself: isFromProvider || !Self.isHash(claim))
            else { throw .flawed(.wrongNonce) }
            return
        }
        // OpenID Connect Core 1.0 §3.1.3.7, 11: a client that asked with a nonce has to check it. A token that was
        // stolen from another application's redirect comes without the caller's nonce.
        guard !carriesNonce || configuration.provider.acceptUnknownNonce else { throw .flawed(.missingNonce) }
    }

    private var carriesNonce: Bool {
        switch claims.member("nonce") {
        case nil, .null, .string(.empty): false
        default: true
        }
    }

    private func isIssued(by configuration: ProviderConfiguration) -> Bool {
        guard let issuer = claims.member("iss")?.text, !issuer.isEmpty, !configuration.issuer.isEmpty else {
            return false
        }
        if issuer == configuration.issuer { return !Self.isTemplate(issuer) }
        let usesOwnIssuer = configuration.provider.issuer.isEmpty
        if usesOwnIssuer && !configuration.known.issuerAlias.isEmpty && issuer == configuration.known.issuerAlias {
            return true
        }
        // Microsoft: the issuer names the directory that the claim `tid` names as well.
        guard configuration.known.hasIssuerTemplate, let directory = claims.member("tid")?.text, Self.isUUID(directory)
        else {
            return false
        }
        return issuer == URLTemplate.fill("{tenantid}", in: configuration.issuer, with: directory)
    }

    /// Any of the token's audiences may match. If there are several, `azp` must say which one asked.
    private func isMeant(for audiences: [Text]) -> Bool {
        switch claims.member("aud") {
        case .string(let audience): return audiences.contains(audience)
        case .array(let values):
            let named = values.compactMap(\.text)
            guard named.count == values.count, named.contains(where: audiences.contains) else { return false }
            if named.count == 1 { return true }
            guard let party = claims.member("azp")?.text else { return false }
            return audiences.contains(party)
        default: return false
        }
    }

    /// Whether the client that asked for the token is one of the audiences, where the token names it.
    ///
    /// An application that has an API gets access tokens whose audience it is, signed as ID tokens are (Microsoft,
    /// Keycloak). Another application that may use this API asked for them, and must not sign in as the user. The claim
    /// for the client differs: `azp` (OpenID Connect Core 1.0 §2), `client_id` (RFC 9068 §2.2), `appid` (Microsoft's
    /// tokens of version 1.0, AD FS), `cid` (Okta). An ID token has at most its own client there. Only Google names
    /// another one, in `azp`: the Android application that asked for the web application's token.
    private func wasAskedFor(by audiences: [Text]) -> Bool {
        Self.isAbsent(claims.member("azp"), orOneOf: audiences, orAnother: isGoogles)
            && Self.isAbsent(claims.member("client_id"), orOneOf: audiences)
            && Self.isAbsent(claims.member("appid"), orOneOf: audiences)
            && Self.isAbsent(claims.member("cid"), orOneOf: audiences)
    }

    private static func isAbsent(
        _ claim: JSONValue?, orOneOf audiences: [Text], orAnother mayBeAnother: @autoclosure () -> Bool = false
    ) -> Bool {
        switch claim {
        case nil, .null: true
        case .string(let party): audiences.contains(party) || mayBeAnother()
        default: false
        }
    }

    private var isGoogles: Bool {
        guard let issuer = claims.member("iss")?.text, let google = KnownProvider("google.com") else { return false }
        return ProviderConfiguration.isSpelling(of: google, issuer)
    }

    /// Whether the claim is the SHA-256 of the nonce in hex, or with `mayBeItself` the nonce. Apple's and Firebase's
    /// SDKs send the hash to the provider.
    ///
    /// A thief of a token can read its claim, but knows no text whose hash the claim is. So a claim in the form of a
    /// hash is not accepted as the nonce itself where the application brings the token.
    private static func matches(_ claim: Text, _ nonce: Text, mayBeItself: Bool) -> Bool {
        let hash = Hex.encode(Digest.sha256(nonce.bytes)).bytes
        return constantTimeEqual(claim.bytes, hash) || mayBeItself && constantTimeEqual(claim.bytes, nonce.bytes)
    }

    /// Whether the claim has the form of a SHA-256 in hex, in lower case.
    private static func isHash(_ claim: Text) -> Bool {
        claim.byteCount == 64
            && claim.bytes.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }

    /// RFC 7519 §2 NumericDate: seconds, with a fraction or without.
    private static func time(_ value: JSONValue?) -> Timestamp? {
        switch value {
        case .integer(let seconds): return Timestamp(seconds: seconds)
        case .double(let seconds):
            guard let whole = Int64(exactly: seconds.rounded(.down)) else { return nil }
            return Timestamp(seconds: whole)
        default: return nil
        }
    }

    private static func isTemplate(_ issuer: Text) -> Bool { issuer.bytes.contains(UInt8(ascii: "{")) }

    private static func isUUID(_ text: Text) -> Bool {
        guard text.byteCount == 36 else { return false }
        return text.bytes.enumerated().allSatisfy { index, byte in
            if [8, 13, 18, 23].contains(index) { return byte == UInt8(ascii: "-") }
            return (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte)
        }
    }
}
