import Base
import Messages
import Tokens

/// The response of a method that verifies a token.
protocol VerifiedTokenResponse: Message {
    init(
        uid: Text, tenantID: Text, sessionID: Text, authTimeMicros: Int64, expiresAtMicros: Int64, claimsJSON: [UInt8])
}

extension TokensVerifyIdTokenResponse: VerifiedTokenResponse {}
extension TokensVerifySessionCookieResponse: VerifiedTokenResponse {}

extension Reply where Response: VerifiedTokenResponse {
    /// The response for `token`, which is encoded anew only until it is kept with the token.
    static func verified(_ token: VerifiedToken) -> Reply {
        .encoded(
            token.answer {
                Response(
                    uid: token.uid, tenantID: token.tenantID, sessionID: Hex.encode(token.sessionID),
                    authTimeMicros: token.authTime.microseconds, expiresAtMicros: token.expiresAt.microseconds,
                    claimsJSON: token.payload
                ).encoded()
            })
    }
}
