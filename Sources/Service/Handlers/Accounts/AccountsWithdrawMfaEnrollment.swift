import Base
import Identity
import Messages

/// postern.v1.Accounts/WithdrawMfaEnrollment
enum AccountsWithdrawMfaEnrollment: SlowMethod {
    static func handle(
        _ request: AccountsWithdrawMfaEnrollmentRequest, _ call: Call
    ) async throws -> AccountsWithdrawMfaEnrollmentResponse {
        let signedIn = try await call.project.secondFactorEnrollments.withdraw(
            request.factorID, call.endUserRequest(idToken: request.idToken))
        return AccountsWithdrawMfaEnrollmentResponse(user: signedIn.user, tokens: signedIn.tokens)
    }

    static func endUser(of request: AccountsWithdrawMfaEnrollmentRequest) -> NamedEndUser {
        NamedEndUser(idToken: request.idToken)
    }
}
