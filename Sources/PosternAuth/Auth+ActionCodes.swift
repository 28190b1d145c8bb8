import Base
import Messages
import PosternClient

extension Auth {
    /// Mails a link for a new password. Says nothing about whether the email has an account, unless the tenant lets
    /// anybody ask.
    public func sendPasswordReset(
        withEmail email: String, actionCodeSettings settings: ActionCodeSettings = ActionCodeSettings()
    ) async throws {
        let email = try backend.text(email, .invalidEmail)
        try await mail(.passwordReset, email: email, settings: settings)
    }

    /// Signs every device of the user out.
    public func confirmPasswordReset(withCode code: String, newPassword: String) async throws {
        let request = AccountsResetPasswordRequest(
            tenantID: backend.tenantID, oobCode: try actionCode(code),
            newPassword: try backend.secret(newPassword, .weakPassword))
        let response = try await ask { try await backend.accounts.resetPassword(request) }
        backend.device.remember(response.deviceToken)
    }

    /// The email whose password the code sets; the code stays good. Throws invalidActionCode for a code of another use.
    public func verifyPasswordResetCode(_ code: String) async throws -> String {
        let info = try await checkActionCode(code)
        guard info.operation == .passwordReset else {
            throw AuthError(.invalidActionCode, reason: "INVALID_OOB_CODE", "The code is not for a new password.")
        }
        return info.email
    }

    /// What a code is for; it stays good. `code` may be the whole link.
    public func checkActionCode(_ code: String) async throws -> ActionCodeInfo {
        let request = AccountsCheckOobCodeRequest(tenantID: backend.tenantID, oobCode: try actionCode(code))
        return ActionCodeInfo(try await ask { try await backend.accounts.checkOobCode(request) })
    }

    /// Verifies, changes, recovers or rejects an email. `User.reload` shows it. Call it when the person has confirmed,
    /// never because a page was opened: mail scanners open every link.
    public func applyActionCode(_ code: String) async throws {
        let request = AccountsApplyOobCodeRequest(tenantID: backend.tenantID, oobCode: try actionCode(code))
        _ = try await ask { try await backend.accounts.applyOobCode(request) }
    }

    /// Mails a link that signs in, or up, without a password. Keep the email: `signIn(withEmail:link:)` asks for it.
    public func sendSignInLink(
        toEmail email: String, actionCodeSettings settings: ActionCodeSettings = ActionCodeSettings()
    ) async throws {
        let email = try backend.text(email, .invalidEmail)
        try await mail(.emailSignin, email: email, settings: settings)
    }

    /// Whether a link that opened the application is one to sign in with.
    public func isSignIn(withEmailLink link: String) -> Bool {
        let link = ActionLink(link)
        return link.mode == "signIn" && link.code != nil
    }

    private func ask<Result>(_ body: () async throws -> Result) async throws -> Result {
        try await cancellable { () async throws(AuthError) in try await backend.call(body) }
    }

    private func mail(_ type: OobRequestType, email: Text, settings: ActionCodeSettings) async throws {
        try await cancellable { () async throws(AuthError) in
            try await backend.sendCode(type, email: email, settings: settings)
        }
    }

    private func actionCode(_ code: String) throws(AuthError) -> Secret {
        try backend.secret(ActionLink.code(in: code), .invalidActionCode)
    }
}
