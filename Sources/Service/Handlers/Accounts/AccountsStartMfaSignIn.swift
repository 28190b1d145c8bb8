import Base
import Identity
import Messages

/// postern.v1.Accounts/StartMfaSignIn
enum AccountsStartMfaSignIn: SlowMethod {
    static func handle(
        _ request: AccountsStartMfaSignInRequest, _ call: Call
    ) async throws -> AccountsStartMfaSignInResponse {
        let sent = try await call.project.secondFactorSignIns.start(
            request.pendingCredential, factorID: request.factorID, locale: request.locale,
            call.endUserRequest(endUserIP: request.endUserIP, deviceToken: request.deviceToken))
        return AccountsStartMfaSignInResponse(
            sessionInfo: sent.sessionInfo, expiresAtMicros: sent.expiresAt.microseconds)
    }
}
