public import Base
public import JSON

/// An ID token and what it says. Times are the server's.
public struct AuthTokenResult: Sendable {
    public let token: String
    public let expirationDate: Timestamp
    /// When the user last proved who they are.
    public let authDate: Timestamp
    public let issuedAtDate: Timestamp
    /// "password", "anonymous", "custom", "google.com", …
    public let signInProvider: String
    /// "phone", "totp", or nil.
    public let signInSecondFactor: String?
    /// The whole payload, an object: custom claims stand beside the registered ones.
    public let claims: JSONValue

    init(_ token: Text) throws(AuthError) {
        let payload = try IDTokenPayload(token)
        self.token = token.string
        self.expirationDate = payload.expiresAt
        self.issuedAtDate = payload.issuedAt
        self.authDate = Timestamp(seconds: payload.claims["auth_time"]?.integer ?? 0)
        self.signInProvider = payload.signInProvider.string
        self.signInSecondFactor = payload.claims["firebase"]?["sign_in_second_factor"]?.string
        self.claims = payload.claims
    }

    /// One claim by name.
    public subscript(claim name: String) -> JSONValue? {
        Text(validating: [UInt8](name.utf8)).flatMap { claims[$0] }
    }
}
