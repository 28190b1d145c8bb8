import Base
import Identity
import Messages

/// postern.v1.Accounts/SignUp: with a password, or without any credential.
enum AccountsSignUp: SlowMethod {
    static func handle(_ request: AccountsSignUpRequest, _ call: Call) async throws -> AccountsSignUpResponse {
        let isLink = !request.idToken.isEmpty
        let endUserRequest = call.endUserRequest(
            idToken: request.idToken, endUserIP: request.endUserIP,
            // Linking begins no session, so the device's name is ignored.
            deviceName: isLink ? .empty : request.deviceName)
        if request.email.isEmpty, request.password.isEmpty, !isLink {
            return response(try await call.project.signIns.signUp(AnonymousSignUp(), endUserRequest))
        }
        let signUp = PasswordSignUp(
            email: request.email, password: request.password, displayName: request.displayName,
            passwords: call.project.passwords)
        return response(try await call.project.signIns.signUpOrLink(signUp, endUserRequest))
    }

    static func endUser(of request: AccountsSignUpRequest) -> NamedEndUser {
        NamedEndUser(idToken: request.idToken, email: request.email)
    }

    private static func response<Proof>(_ outcome: SignInOutcome<Proof>) -> AccountsSignUpResponse {
        AccountsSignUpResponse(user: outcome.user, tokens: outcome.tokens, deviceToken: outcome.deviceToken)
    }
}
