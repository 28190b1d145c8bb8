import Base
import Identity
import Messages
import Store
import Tokens

/// postern.v1.Tokens/VerifySessionCookie
enum TokensVerifySessionCookie: FastMethod {
    static func handle(
        _ request: TokensVerifySessionCookieRequest, _ call: borrowing ReadCall,
        _ transaction: borrowing ReadTransaction
    ) throws -> Reply<TokensVerifySessionCookieResponse> {
        let token = try call.verified(
            sessionCookie: request.sessionCookie, anyTenant: request.anyTenant, in: transaction)
        return .encoded(
            token.answer {
                TokensVerifySessionCookieResponse(
                    uid: token.uid, tenantID: token.tenantID, sessionID: Hex.encode(token.sessionID),
                    authTimeMicros: token.authTime.microseconds, expiresAtMicros: token.expiresAt.microseconds,
                    claimsJSON: token.payload
                ).encoded()
            })
    }
}
