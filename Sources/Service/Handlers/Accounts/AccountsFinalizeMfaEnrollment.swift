import Base
import Identity
import Messages

/// postern.v1.Accounts/FinalizeMfaEnrollment
enum AccountsFinalizeMfaEnrollment: SlowMethod {
    static func handle(
        _ request: AccountsFinalizeMfaEnrollmentRequest, _ call: Call
    ) async throws -> AccountsFinalizeMfaEnrollmentResponse {
        let done = try await call.project.secondFactorEnrollments.finalize(
            request.sessionInfo, code: request.code, displayName: request.displayName,
            call.endUserRequest(
                idToken: request.idToken, endUserIP: request.endUserIP, deviceToken: request.deviceToken))
        return AccountsFinalizeMfaEnrollmentResponse(
            user: done.signedIn.user, tokens: done.signedIn.tokens, factorID: done.factorID,
            recoveryCodes: done.recoveryCodes, deviceToken: done.deviceToken)
    }

    static func endUser(of request: AccountsFinalizeMfaEnrollmentRequest) -> NamedEndUser {
        NamedEndUser(idToken: request.idToken)
    }
}
