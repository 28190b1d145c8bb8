import Base
import Identity
import Messages
import Rules

/// postern.v1.Accounts/ResetPassword
enum AccountsResetPassword: SlowMethod {
    static func handle(
        _ request: AccountsResetPasswordRequest, _ call: Call
    ) async throws -> AccountsResetPasswordResponse {
        guard call.settings.allowsPasswordSignup else { throw Failure.passwordLoginDisabled }
        guard !request.oobCode.isEmpty else { throw Failure.missingOobCode }
        return try await call.project.mailedCodes.answeringRepeats(of: call.origin) { try await reset(request, call) }
    }

    private static func reset(
        _ request: AccountsResetPasswordRequest, _ call: Call
    ) async throws -> AccountsResetPasswordResponse {
        // The hash is computed only for a valid code; the transaction checks the code again.
        let seen = try call.project.mailedCodes.check(request.oobCode, settings: call.settings)
        guard seen.requestType == .passwordReset else { throw Failure.invalidOobCode }
        try call.checkNewPassword(request.newPassword)
        let hash = try await call.project.passwords.hash(request.newPassword, call.passwordTurn())
        var (answer, changed) = try await call.project.mailedCodes.resetPassword(
            request.oobCode, passwordHash: hash, settings: call.settings, origin: call.origin, deadline: call.deadline)
        if let changed {
            call.forgiveGuesses(of: changed)
            answer.deviceToken = call.deviceToken(for: changed)
        }
        return answer
    }
}
