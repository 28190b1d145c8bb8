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
        let token = try call.verifiedToken(
            request.idToken, by: call.project.tokenCheck, anyTenant: request.anyTenant, in: transaction)
        return .message(
            TokensVerifyIdTokenResponse(
                uid: token.uid, tenantID: token.tenantID, sessionID: Hex.encode(token.sessionID),
                authTimeMicros: token.authTime.microseconds, expiresAtMicros: token.expiresAt.microseconds,
                claimsJSON: token.payload))
    }
}

extension Call {
    /// A token that is genuine and alive, of this call's tenant or, with `anyTenant`, of any in the caller's scope.
    borrowing func verifiedToken(
        _ text: Text, by check: TokenCheck, anyTenant: Bool, in transaction: borrowing ReadTransaction
    ) throws -> VerifiedToken {
        let token = try check.verify(text)
        var settings = settings
        if anyTenant {
            let tenantID = try caller?.tenant(requested: token.tenantID) ?? token.tenantID
            guard tenantID == token.tenantID else { throw Failure.tenantMismatch }
            settings = try project.tenants.settings(of: tenantID, in: transaction)
            try settings.checkOpen(to: caller, for: method.descriptor)
        }
        try check.checkAlive(token, settings: settings, in: transaction)
        return token
    }
}
