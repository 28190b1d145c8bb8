public import Base
public import JSON

/// An ID token and its claims. Times are by the server's clock.
///
/// ```swift
/// let result = try await user.idTokenResult()
/// if result[claim: "role"]?.text == "editor" { print("may edit until", result.expirationDate.microseconds) }
/// ```
public struct AuthTokenResult: Sendable {
    /// The ID token, as services take it.
    public let token: String
    /// When the ID token expires.
    public let expirationDate: Timestamp
    /// When the user last proved their identity.
    public let authDate: Timestamp
    /// When the ID token was issued.
    public let issuedAtDate: Timestamp
    /// The way the session was begun: "password", "anonymous", "custom", "google.com", ….
    public let signInProvider: String
    /// The second factor of the sign-in: "phone" or "totp". Nil: none.
    public let signInSecondFactor: String?
    /// The whole payload, a JSON object: custom claims stand beside the registered ones.
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

    /// One claim by its name. Nil: the token has no such claim.
    public subscript(claim name: String) -> JSONValue? {
        Text(validating: [UInt8](name.utf8)).flatMap { claims[$0] }
    }
}
