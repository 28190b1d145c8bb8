import Base
import Identity
import Messages
import Store
import Tokens

/// postern.v1.Tokens/VerifySessionCookie
enum TokensVerifySessionCookie: FastMethod {
    static func handle(
        _ request: TokensVerifySessionCookieRequest, _ call: borrowing Call, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<TokensVerifySessionCookieResponse> {
        guard !request.sessionCookie.isEmpty else {
            throw Failure.invalid("MISSING_SESSION_COOKIE", field: "session_cookie", "is required")
        }
        let token = try call.verifiedToken(
            request.sessionCookie, by: call.project.cookieCheck, anyTenant: request.anyTenant, in: transaction)
        return .message(
            TokensVerifySessionCookieResponse(
                uid: token.uid, tenantID: token.tenantID, sessionID: Hex.encode(token.sessionID),
                authTimeMicros: token.authTime.microseconds, expiresAtMicros: token.expiresAt.microseconds,
                claimsJSON: token.payload))
    }
}
