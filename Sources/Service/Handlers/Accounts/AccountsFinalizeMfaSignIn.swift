import Base
import Identity
import Messages

/// postern.v1.Accounts/FinalizeMfaSignIn
enum AccountsFinalizeMfaSignIn: SlowMethod {
    static func handle(
        _ request: AccountsFinalizeMfaSignInRequest, _ call: Call
    ) async throws -> AccountsFinalizeMfaSignInResponse {
        let shown: ShownFactor? =
            switch request.proof {
            case .totpCode(let code): .totp(factorID: request.factorID, code: code)
            case .phone(let credential):
                .phone(factorID: request.factorID, code: credential.code, sessionInfo: credential.sessionInfo)
            case .recoveryCode(let code): .recoveryCode(code)
            case nil: nil
            }
        let (signedIn, deviceToken) = try await call.project.secondFactorSignIns.finish(
            request.pendingCredential, shown,
            call.endUserRequest(endUserIP: request.endUserIP, deviceToken: request.deviceToken))
        return AccountsFinalizeMfaSignInResponse(
            user: signedIn.user, tokens: signedIn.tokens, deviceToken: deviceToken, isNewUser: signedIn.isNewUser)
    }
}
