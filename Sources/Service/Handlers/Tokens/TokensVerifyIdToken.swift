import Base
import Identity
import Messages
import Store
import Tokens

/// postern.v1.Tokens/VerifyIdToken
enum TokensVerifyIdToken: FastMethod {
    static func handle(
        _ request: TokensVerifyIdTokenRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<TokensVerifyIdTokenResponse> {
        let token = try call.verified(idToken: request.idToken, anyTenant: request.anyTenant, in: transaction)
        return .encoded(
            token.answer {
                TokensVerifyIdTokenResponse(
                    uid: token.uid, tenantID: token.tenantID, sessionID: Hex.encode(token.sessionID),
                    authTimeMicros: token.authTime.microseconds, expiresAtMicros: token.expiresAt.microseconds,
                    claimsJSON: token.payload
                ).encoded()
            })
    }
}
