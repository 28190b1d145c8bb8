public import Base
import JSON
import Tokens

/// What a verified token says.
public struct DecodedToken: Sendable {
    let token: VerifiedToken

    public var uid: Text { token.uid }
    /// "" is the default pool.
    public var tenantID: Text { token.tenantID }
    /// 32 hexadecimal digits, as the claim `sid`.
    public var sessionID: Text { Hex.encode(token.sessionID) }
    /// "password", "anonymous", "google.com", …
    public var signInProvider: Text { token.signInProvider }
    /// When the user last proved who they are.
    public var authTime: Timestamp { token.authTime }
    public var issuedAt: Timestamp { token.issuedAt }
    public var expiresAt: Timestamp { token.expiresAt }
    /// All claims, as signed: a JSON object.
    public var payload: [UInt8] { token.payload }

    /// A claim that is a text, a custom one for example.
    public func text(_ claim: String) -> String? { member(claim)?.text?.string }
    /// A claim that is a whole number.
    public func integer(_ claim: String) -> Int64? { member(claim)?.integer }
    public func bool(_ claim: String) -> Bool? { member(claim)?.bool }

    private func member(_ claim: String) -> JSONValue? {
        guard let name = Text(validating: [UInt8](claim.utf8)) else { return nil }
        return (try? JSONValue(parsing: token.payload))?[name]
    }
}
