import Base
import Identity
import Messages

/// postern.v1.Accounts/SignInWithIdp
enum AccountsSignInWithIdp: SlowMethod {
    static func handle(
        _ request: AccountsSignInWithIdpRequest, _ call: Call
    ) async throws -> AccountsSignInWithIdpResponse {
        let address = try call.endUserAddress(request.endUserIP)
        if !request.idToken.isEmpty { return try await link(request, call) }
        let origin = try call.origin(deviceName: request.deviceName, address: address)
        let identity = try await call.provedIdentity(request.credential)
        let signedIn = try await call.recordingRefusals(email: Email(stored: identity.email)) {
            try await call.project.signIn(
                identity, settings: call.settings, origin: origin, deadline: call.deadline)
        }
        return AccountsSignInWithIdpResponse(
            user: signedIn.user, tokens: signedIn.tokens, isNewUser: signedIn.isNewUser, provider: identity.entry,
            deviceToken: call.deviceToken(for: signedIn.user))
    }

    static func endUser(of request: AccountsSignInWithIdpRequest) -> NamedEndUser {
        NamedEndUser(idToken: request.idToken)
    }

    private static func link(
        _ request: AccountsSignInWithIdpRequest, _ call: Call
    ) async throws -> AccountsSignInWithIdpResponse {
        if let again = try await call.repeatedChange(idToken: request.idToken) {
            return AccountsSignInWithIdpResponse(
                user: again.user, tokens: again.tokens, deviceToken: call.deviceToken(for: again.user))
        }
        // Who may not link is told before the provider is asked.
        let verified = try call.verifiedUser(idToken: request.idToken)
        try verified.requireRecentLogin(now: call.now)
        let identity = try await call.provedIdentity(request.credential)
        let signedIn = try await call.project.link(
            identity, to: verified, origin: call.origin, deadline: call.deadline)
        return AccountsSignInWithIdpResponse(
            user: signedIn.user, tokens: signedIn.tokens, provider: identity.entry,
            deviceToken: call.deviceToken(for: signedIn.user))
    }
}
