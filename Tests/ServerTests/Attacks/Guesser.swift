import Base
import Messages
import TestSupport
import Wire

/// An attacker who tries passwords through an application that is trusted, or not, to name end users' addresses.
struct Guesser {
    let client: RawClient

    init(_ server: TestServer, isTrusted: Bool = true) throws {
        let admin = try server.connect()
        let made: ProjectCreateApiKeyResponse = try admin.call(
            "postern.v1.Project/CreateApiKey",
            ProjectCreateApiKeyRequest(role: .app, scope: Scope(tenants: .all(true)), trustedEndUserIP: isTrusted))
        client = try server.connect(authenticated: false)
        client.apiKey = made.secretKey
    }

    func signIn(
        _ email: Text, _ password: Text = "correct horse", from address: Text = .empty, deviceToken: Text = .empty,
        tenantID: Text = .empty
    ) throws -> AccountsSignInWithPasswordResponse {
        try client.call(
            "postern.v1.Accounts/SignInWithPassword",
            AccountsSignInWithPasswordRequest(
                tenantID: tenantID, email: email, password: Secret(password.bytes), endUserIP: address,
                deviceToken: deviceToken))
    }

    /// Tries a password; returns the refusal.
    func tryPassword(
        _ password: Text, of email: Text, from address: Text = .empty, deviceToken: Text = .empty,
        tenantID: Text = .empty
    ) -> Failure {
        failure { _ = try signIn(email, password, from: address, deviceToken: deviceToken, tenantID: tenantID) }
    }

    /// Signs up with an email that may be taken; returns the refusal.
    func signUp(_ email: Text, from address: Text = .empty) -> Failure {
        failure {
            let _: AccountsSignUpResponse = try client.call(
                "postern.v1.Accounts/SignUp",
                AccountsSignUpRequest(email: email, password: Secret("correct horse"), endUserIP: address))
        }
    }
}

/// Why guesses are refused.
let tooManyAttempts = "TOO_MANY_ATTEMPTS_TRY_LATER"
let wrongCredentials = "INVALID_LOGIN_CREDENTIALS"
