public import Base
import JSON
import Tokens

/// The contents of a verified token.
///
/// ```swift
/// let token = try await verifier.verify(idToken)
/// if token.text("plan") == "pro" { print(token.uid, "may export until", token.expiresAt.microseconds) }
/// ```
public struct DecodedToken: Sendable {
    let token: VerifiedToken

    /// The user's id in its tenant.
    public var uid: Text { token.uid }
    /// The user's tenant. Empty: the default pool.
    public var tenantID: Text { token.tenantID }
    /// The id of the session: 32 hexadecimal digits, the claim `sid`.
    public var sessionID: Text { Hex.encode(token.sessionID) }
    /// The way the session was begun: "password", "anonymous", "google.com", ….
    public var signInProvider: Text { token.signInProvider }
    /// When the user last proved their identity, by the server's clock.
    public var authTime: Timestamp { token.authTime }
    /// When the token was issued, by the server's clock.
    public var issuedAt: Timestamp { token.issuedAt }
    /// When the token expires, by the server's clock.
    public var expiresAt: Timestamp { token.expiresAt }
    /// All claims as they were signed: a JSON object in UTF-8.
    public var payload: [UInt8] { token.payload }

    /// A claim that is a string, for example a custom claim. Nil: no such claim, or another type.
    public func text(_ claim: String) -> String? { member(claim)?.text?.string }
    /// A claim that is a whole number. Nil: no such claim, or another type.
    public func integer(_ claim: String) -> Int64? { member(claim)?.integer }
    /// A claim that is true or false. Nil: no such claim, or another type.
    public func bool(_ claim: String) -> Bool? { member(claim)?.bool }

    private func member(_ claim: String) -> JSONValue? {
        guard let name = Text(validating: [UInt8](claim.utf8)) else { return nil }
        return (try? JSONValue(parsing: token.payload))?[name]
    }
}
