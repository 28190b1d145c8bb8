import Identity
import Messages

/// postern.v1.Accounts/SignInWithCustomToken
enum AccountsSignInWithCustomToken: SlowMethod {
    static func isLong(_ request: AccountsSignInWithCustomTokenRequest) -> Bool {
        CustomTokenSignIn.triesKeys(request.token)
    }

    static func handle(
        _ request: AccountsSignInWithCustomTokenRequest, _ call: Call
    ) async throws -> AccountsSignInWithCustomTokenResponse {
        let outcome = try await call.project.signIns.signIn(
            CustomTokenSignIn(token: request.token, customTokens: call.project.customTokens),
            call.endUserRequest(endUserIP: request.endUserIP, deviceName: request.deviceName))
        return AccountsSignInWithCustomTokenResponse(
            user: outcome.user, tokens: outcome.tokens, isNewUser: outcome.isNewUser,
            deviceToken: outcome.deviceToken)
    }
}
