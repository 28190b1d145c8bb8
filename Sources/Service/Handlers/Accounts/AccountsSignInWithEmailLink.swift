import Base
import Identity
import Messages

/// postern.v1.Accounts/SignInWithEmailLink
enum AccountsSignInWithEmailLink: SlowMethod {
    static func handle(
        _ request: AccountsSignInWithEmailLinkRequest, _ call: Call
    ) async throws -> AccountsSignInWithEmailLinkResponse {
        let outcome = try await call.project.signIns.signInOrLink(
            EmailLinkSignIn(email: request.email, code: request.oobCode),
            call.endUserRequest(
                idToken: request.idToken, endUserIP: request.endUserIP, deviceName: request.deviceName))
        return AccountsSignInWithEmailLinkResponse(
            user: outcome.user, tokens: outcome.tokens, isNewUser: outcome.isNewUser,
            deviceToken: outcome.deviceToken)
    }

    static func endUser(of request: AccountsSignInWithEmailLinkRequest) -> NamedEndUser {
        NamedEndUser(idToken: request.idToken, email: request.email)
    }
}
