import Base
import Identity
import Messages

/// postern.v1.Accounts/Reauthenticate
enum AccountsReauthenticate: SlowMethod {
    static func handle(
        _ request: AccountsReauthenticateRequest, _ call: Call
    ) async throws -> AccountsReauthenticateResponse {
        let project = call.project
        switch request.credential {
        case .password(let credential):
            return try await reauthenticate(
                PasswordSignIn(email: credential.email, password: credential.password, passwords: project.passwords),
                request, call)
        case .emailLink(let credential):
            return try await reauthenticate(
                EmailLinkSignIn(email: credential.email, code: credential.oobCode), request, call)
        case .customToken(let token):
            return try await reauthenticate(
                CustomTokenSignIn(token: token, customTokens: project.customTokens), request, call)
        case .phone(let credential):
            return try await reauthenticate(
                PhoneSignIn(
                    .code(credential.code, sessionInfo: credential.sessionInfo), codes: project.verificationCodes),
                request, call)
        case .idp(let credential): return try await reauthenticate(federated(credential, project), request, call)
        // A request without any credential is refused like one without a provider's credential.
        case nil: return try await reauthenticate(federated(nil, project), request, call)
        }
    }

    static func endUser(of request: AccountsReauthenticateRequest) -> NamedEndUser {
        NamedEndUser(idToken: request.idToken)
    }

    static func isLong(_ request: AccountsReauthenticateRequest) -> Bool {
        guard case .customToken(let token) = request.credential else { return false }
        return CustomTokenSignIn.triesKeys(token)
    }

    private static func federated(_ credential: IdpCredential?, _ project: Project) -> FederatedSignIn {
        FederatedSignIn(credential, providers: project.providers, pendingCredentials: project.pendingCredentials)
    }

    private static func reauthenticate(
        _ method: some ReauthenticatingMethod, _ request: AccountsReauthenticateRequest, _ call: Call
    ) async throws -> AccountsReauthenticateResponse {
        let outcome = try await call.project.signIns.reauthenticate(
            method,
            call.endUserRequest(
                idToken: request.idToken, endUserIP: request.endUserIP, deviceToken: request.deviceToken))
        return AccountsReauthenticateResponse(
            user: outcome.user, tokens: outcome.tokens, deviceToken: outcome.deviceToken)
    }
}
