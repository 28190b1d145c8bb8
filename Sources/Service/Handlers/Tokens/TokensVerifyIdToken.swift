import Base
import Identity
import Messages
import Store
import Tokens

/// postern.v1.Tokens/VerifyIdToken
enum TokensVerifyIdToken: FastMethod {
    static func handle(
        _ request: TokensVerifyIdTokenRequest, _ call: borrowing Call, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<TokensVerifyIdTokenResponse> {
        guard !request.idToken.isEmpty else {
            throw Failure.invalid("MISSING_ID_TOKEN", field: "id_token", "is required")
        }
        let token = try call.project.tokenCheck.verify(request.idToken)
        var settings = call.settings
        if request.anyTenant {
            let tenantID = try call.caller?.tenant(requested: token.tenantID) ?? token.tenantID
            guard tenantID == token.tenantID else { throw Failure.tenantMismatch }
            settings = try call.project.tenants.settings(of: tenantID, in: transaction)
            if settings.isAuthDisabled { throw Failure.projectDisabled }
        }
        try call.project.tokenCheck.checkAlive(token, settings: settings, in: transaction)
        return .message(
            TokensVerifyIdTokenResponse(
                uid: token.uid, tenantID: token.tenantID, sessionID: Hex.encode(token.sessionID),
                authTimeMicros: token.authTime.microseconds, expiresAtMicros: token.expiresAt.microseconds,
                claimsJSON: token.payload))
    }
}
