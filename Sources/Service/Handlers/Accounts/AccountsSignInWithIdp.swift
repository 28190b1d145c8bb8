import Base
import Identity
import Messages
import Rules

/// postern.v1.Accounts/SignInWithIdp
enum AccountsSignInWithIdp: SlowMethod {
    static func handle(
        _ request: AccountsSignInWithIdpRequest, _ call: Call
    ) async throws -> AccountsSignInWithIdpResponse {
        let outcome = try await call.project.signIns.signInOrLink(
            FederatedSignIn(
                request.credential, providers: call.project.providers,
                pendingCredentials: call.project.pendingCredentials),
            call.endUserRequest(
                idToken: request.idToken, endUserIP: request.endUserIP,
                // Linking begins no session, so the device's name is ignored.
                deviceName: request.idToken.isEmpty ? request.deviceName : .empty))
        return AccountsSignInWithIdpResponse(
            user: outcome.user, tokens: outcome.tokens, isNewUser: outcome.isNewUser,
            provider: outcome.proof?.entry, deviceToken: outcome.deviceToken)
    }

    static func endUser(of request: AccountsSignInWithIdpRequest) -> NamedEndUser {
        NamedEndUser(idToken: request.idToken)
    }
}
