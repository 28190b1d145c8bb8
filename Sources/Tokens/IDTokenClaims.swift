public import Base
import JSON

/// The claims of an ID token: Firebase's claims, and `sid` and `gen`, by which a token can be revoked.
///
/// Times are whole seconds in the JWT and microseconds here. The exception is `gen`, the user's tokens-valid-after in
/// microseconds at signing.
public struct IDTokenClaims: Sendable, Equatable {
    /// A provider and the user's identifiers there, for the claim `firebase.identities`.
    public struct Identity: Sendable, Equatable {
        public var providerID: Text
        public var identifiers: [Text]

        public init(providerID: Text, identifiers: [Text]) {
            self.providerID = providerID
            self.identifiers = identifiers
        }
    }

    public var issuer: Text = .empty
    public var audience: Text = .empty
    public var uid: Text = .empty
    public var tenantID: Text = .empty
    public var issuedAt: Timestamp = .zero
    public var expiresAt: Timestamp = .zero
    public var authTime: Timestamp = .zero
    /// 16 bytes, as 32 hex digits in the token.
    public var sessionID: [UInt8] = []
    /// The user's tokens-valid-after when this was signed, in microseconds.
    public var generation: Int64 = 0
    public var email: Text = .empty
    public var isEmailVerified = false
    public var displayName: Text = .empty
    public var photoURL: Text = .empty
    public var phoneNumber: Text = .empty
    /// "password", "anonymous", "google.com", …
    public var signInProvider: Text = .empty
    /// The second factor that the user showed in the session: "phone", "totp" or "recovery_code"; empty for none.
    public var secondFactor: Text = .empty
    /// The id of the second factor; empty for a recovery code.
    public var secondFactorID: Text = .empty
    public var identities: [Identity] = []
    /// A JSON object checked by `Values.checkCustomClaims`. Its members become claims, except for reserved names.
    public var customClaims: [UInt8] = []
    /// A JSON object with the claims of the session (a custom token's claims). They override the user's.
    public var sessionClaims: [UInt8] = []
    /// True for tenants of load tests: nobody must accept the token as a real one.
    public var isSynthetic = false

    public init() {}

    /// Most payloads have fewer bytes.
    private static let usualByteCount = 768

    /// The JWT's payload.
    package func payload() -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.usualByteCount)
        var json = JSONWriter(appendingTo: bytes)
        json.beginObject()
        let custom = customMembers()
        if !displayName.isEmpty && !custom.contains(where: { $0.name == "name" }) {
            json.member("name", text: displayName)
        }
        if !photoURL.isEmpty && !custom.contains(where: { $0.name == "picture" }) {
            json.member("picture", text: photoURL)
        }
        for member in custom {
            json.name(text: member.name)
            json.value(member.value)
        }
        json.member("iss", text: issuer)
        json.member("aud", text: audience)
        json.member("auth_time", integer: authTime.seconds)
        json.member("user_id", text: uid)
        json.member("sub", text: uid)
        json.member("iat", integer: issuedAt.seconds)
        json.member("exp", integer: expiresAt.seconds)
        if signInProvider == "anonymous" { json.member("provider_id", text: signInProvider) }
        if !email.isEmpty {
            json.member("email", text: email)
            json.member("email_verified", bool: isEmailVerified)
        }
        if !phoneNumber.isEmpty { json.member("phone_number", text: phoneNumber) }
        json.member("sid", text: Hex.encode(sessionID))
        json.member("gen", integer: generation)
        if isSynthetic { json.member("synthetic", bool: true) }
        writeFirebase(into: &json)
        json.endObject()
        return json.bytes
    }

    /// The JWT's payload, or nil if it cannot have at most `byteCountMax` bytes.
    ///
    /// What an application can do without is left out, one after the other and only as far as needed: `picture`; the
    /// identities of providers, from the last to the first, and the one that the user signed in with at the end;
    /// `name`. Claims that somebody set are never left out, because a service may decide by them.
    package func payload(byteCountMax: Int) -> [UInt8]? {
        var claims = self
        var bytes = claims.payload()
        while bytes.count > byteCountMax {
            guard claims.leaveOneOut() else { return nil }
            bytes = claims.payload()
        }
        return bytes
    }

    /// False if nothing is left that can be left out.
    private mutating func leaveOneOut() -> Bool {
        if !photoURL.isEmpty {
            photoURL = .empty
            return true
        }
        let left = identities.lastIndex { $0.providerID != Self.emailIdentity && $0.providerID != signInProvider }
        if let index = left ?? identities.lastIndex(where: { $0.providerID != Self.emailIdentity }) {
            identities.remove(at: index)
            return true
        }
        guard !displayName.isEmpty else { return false }
        displayName = .empty
        return true
    }

    /// The name under which `firebase.identities` lists the email.
    package static let emailIdentity: Text = "email"

    /// The custom claims that go into the token. A custom `name` or `picture` overrides the profile's, as in Firebase.
    /// Claims of `ownNames` are left out: a token must not have a claim twice, nor an email for a user who has none.
    private func customMembers() -> [JSONValue.Member] {
        let ofSession = Self.members(of: sessionClaims)
        let ofUser = Self.members(of: customClaims).filter { member in
            !ofSession.contains { $0.name == member.name }
        }
        return (ofUser + ofSession).filter { !Self.ownNames.contains($0.name) }
    }

    private static func members(of object: [UInt8]) -> [JSONValue.Member] {
        guard !object.isEmpty, let value = try? JSONValue(parsing: object), case .object(let members) = value else {
            return []
        }
        return members
    }

    /// The names of all claims that only the server sets, whether or not this token has them.
    package static let ownNames: Set<Text> = [
        "iss", "aud", "auth_time", "user_id", "sub", "iat", "exp", "provider_id", "email", "email_verified",
        "phone_number", "sid", "gen", "synthetic", "firebase",
    ]

    private func writeFirebase(into json: inout JSONWriter) {
        json.name("firebase")
        json.beginObject()
        json.name("identities")
        json.beginObject()
        for identity in identities {
            json.name(text: identity.providerID)
            json.beginArray()
            for identifier in identity.identifiers { json.string(identifier) }
            json.endArray()
        }
        json.endObject()
        json.member("sign_in_provider", text: signInProvider)
        if !secondFactor.isEmpty { json.member("sign_in_second_factor", text: secondFactor) }
        if !secondFactorID.isEmpty { json.member("second_factor_identifier", text: secondFactorID) }
        if !tenantID.isEmpty { json.member("tenant", text: tenantID) }
        json.endObject()
    }
}
