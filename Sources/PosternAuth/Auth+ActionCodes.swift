import Base
import Messages
import PosternClient

extension Auth {
    /// Mails a link that sets a new password.
    ///
    /// It succeeds for an email without an account, too, so that nobody learns which emails have accounts. A tenant may
    /// switch that protection off: then such an email throws userNotFound.
    public func sendPasswordReset(
        withEmail email: String, actionCodeSettings settings: ActionCodeSettings = ActionCodeSettings()
    ) async throws {
        let email = try backend.text(email, .invalidEmail)
        try await mail(.passwordReset, email: email, settings: settings)
    }

    /// Sets the new password and signs the user out on every device.
    ///
    /// `code` is the mailed code or the whole link. Throws expiredActionCode, invalidActionCode, weakPassword,
    /// passwordDoesNotMeetRequirements.
    public func confirmPasswordReset(withCode code: String, newPassword: String) async throws {
        let request = AccountsResetPasswordRequest(
            tenantID: backend.tenantID, oobCode: try actionCode(code),
            newPassword: try backend.secret(newPassword, .weakPassword))
        let response = try await ask { try await backend.accounts.resetPassword(request) }
        backend.device.remember(response.deviceToken)
    }

    /// Returns the email whose password the code can set. The code stays valid.
    ///
    /// Throws expiredActionCode, and invalidActionCode for a code of another purpose.
    public func verifyPasswordResetCode(_ code: String) async throws -> String {
        let info = try await checkActionCode(code)
        guard info.operation == .passwordReset else {
            throw AuthError(.invalidOOBCode, "The code is not for a new password.")
        }
        return info.email
    }

    /// Returns the purpose of a code. The code stays valid. `code` is the mailed code or the whole link.
    ///
    /// Throws expiredActionCode, invalidActionCode.
    public func checkActionCode(_ code: String) async throws -> ActionCodeInfo {
        let request = AccountsCheckOobCodeRequest(tenantID: backend.tenantID, oobCode: try actionCode(code))
        return ActionCodeInfo(try await ask { try await backend.accounts.checkOobCode(request) })
    }

    /// Verifies, changes, recovers or rejects an email, or removes a second factor: the action that the code is for.
    ///
    /// Call it when the person has confirmed, not when a page is opened: mail scanners open every link. `User.reload`
    /// shows the result. Throws expiredActionCode, invalidActionCode.
    public func applyActionCode(_ code: String) async throws {
        let request = AccountsApplyOobCodeRequest(tenantID: backend.tenantID, oobCode: try actionCode(code))
        _ = try await ask { try await backend.accounts.applyOobCode(request) }
    }

    /// Mails a link that signs in without a password, and signs up an email that has no account.
    ///
    /// Keep the email: `signIn(withEmail:link:)` needs it again. Throws operationNotAllowed where the tenant has email
    /// links off.
    public func sendSignInLink(
        toEmail email: String, actionCodeSettings settings: ActionCodeSettings = ActionCodeSettings()
    ) async throws {
        let email = try backend.text(email, .invalidEmail)
        try await mail(.emailSignin, email: email, settings: settings)
    }

    /// Says whether a link that opened the application is a sign-in link: true for links of `sendSignInLink`. Makes no
    /// call.
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
