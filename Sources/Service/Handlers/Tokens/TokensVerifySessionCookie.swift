import Base
import Identity
import Messages
import Store

/// postern.v1.Tokens/VerifySessionCookie
enum TokensVerifySessionCookie: FastMethod {
    static func handle(
        _ request: TokensVerifySessionCookieRequest, _ call: borrowing ReadCall,
        _ transaction: borrowing ReadTransaction
    ) throws -> Reply<TokensVerifySessionCookieResponse> {
        .verified(
            try call.verified(sessionCookie: request.sessionCookie, anyTenant: request.anyTenant, in: transaction))
    }
}
