import Base
import Identity
import Messages

/// postern.v1.Accounts/SignInWithPassword
enum AccountsSignInWithPassword: SlowMethod {
    static func handle(
        _ request: AccountsSignInWithPasswordRequest, _ call: Call
    ) async throws -> AccountsSignInWithPasswordResponse {
        let outcome = try await call.project.signIns.signIn(
            PasswordSignIn(email: request.email, password: request.password, passwords: call.project.passwords),
            call.endUserRequest(
                endUserIP: request.endUserIP, deviceName: request.deviceName, deviceToken: request.deviceToken))
        return AccountsSignInWithPasswordResponse(
            user: outcome.user, tokens: outcome.tokens, deviceToken: outcome.deviceToken)
    }

    static func endUser(of request: AccountsSignInWithPasswordRequest) -> NamedEndUser {
        NamedEndUser(email: request.email)
    }
}
