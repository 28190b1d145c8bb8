import Base
import Identity
import Messages

/// postern.v1.Accounts/RenewRecoveryCodes
enum AccountsRenewRecoveryCodes: SlowMethod {
    static func handle(
        _ request: AccountsRenewRecoveryCodesRequest, _ call: Call
    ) async throws -> AccountsRenewRecoveryCodesResponse {
        AccountsRenewRecoveryCodesResponse(
            recoveryCodes: try await call.project.secondFactorEnrollments.renewRecoveryCodes(
                call.endUserRequest(idToken: request.idToken)))
    }

    static func endUser(of request: AccountsRenewRecoveryCodesRequest) -> NamedEndUser {
        NamedEndUser(idToken: request.idToken)
    }
}
