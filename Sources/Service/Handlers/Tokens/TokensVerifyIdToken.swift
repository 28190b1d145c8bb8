import Base
import Identity
import Messages
import Store

/// postern.v1.Tokens/VerifyIdToken
enum TokensVerifyIdToken: FastMethod {
    static func handle(
        _ request: TokensVerifyIdTokenRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<TokensVerifyIdTokenResponse> {
        .verified(try call.verified(idToken: request.idToken, anyTenant: request.anyTenant, in: transaction))
    }
}
