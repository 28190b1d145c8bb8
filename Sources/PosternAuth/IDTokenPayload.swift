import Base
import JSON

/// The claims of an ID token. They are not verified: the token came from the server over our own connection, and the
/// library grants nothing by them.
struct IDTokenPayload: Sendable {
    let claims: JSONValue
    let issuedAt: Timestamp
    let expiresAt: Timestamp

    /// The session's id: 32 hexadecimal digits. Nil: the server names none.
    var sessionID: String? { claims["sid"]?.string }

    var uid: Text? { claims["sub"]?.text }

    var signInProvider: Text { claims["firebase"]?["sign_in_provider"]?.text ?? .empty }

    /// Throws malformedJWT.
    init(_ token: Text) throws(AuthError) {
        let parts = token.bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let json = Base64.url.decode(Array(parts[1])),
            let claims = try? JSONValue(parsing: json),
            let issuedAt = claims["iat"]?.integer, let expiresAt = claims["exp"]?.integer
        else { throw AuthError(.malformedJWT, "The ID token cannot be read.") }
        self.claims = claims
        self.issuedAt = Timestamp(seconds: issuedAt)
        self.expiresAt = Timestamp(seconds: expiresAt)
    }
}
