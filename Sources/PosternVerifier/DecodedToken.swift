public import Base
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
}
