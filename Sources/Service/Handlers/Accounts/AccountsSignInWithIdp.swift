import Base
import Identity
import Messages

/// postern.v1.Accounts/SignInWithIdp
enum AccountsSignInWithIdp: SlowMethod {
    static func handle(
        _ request: AccountsSignInWithIdpRequest, _ call: Call
    ) async throws -> AccountsSignInWithIdpResponse {
        let isLinking = !request.idToken.isEmpty
        // Who may not link is told before the provider is asked.
        let verified = isLinking ? try call.verifiedUser(idToken: request.idToken) : nil
        try verified?.requireRecentLogin(now: call.now)
        let origin = try call.origin(deviceName: request.deviceName, endUserIP: request.endUserIP)
        let identity = try await call.provedIdentity(request.credential)
        let signedIn: SignedIn
        if let verified {
            signedIn = try await call.project.link(
                identity, to: verified, origin: origin, deadline: call.deadline)
        } else {
            signedIn = try await call.recordingRefusals(email: Email(identity.email)) {
                try await call.project.signIn(
                    identity, settings: call.settings, origin: origin, deadline: call.deadline)
            }
        }
        return AccountsSignInWithIdpResponse(
            user: signedIn.user, tokens: signedIn.tokens, isNewUser: signedIn.isNewUser, provider: identity.entry)
    }
}
