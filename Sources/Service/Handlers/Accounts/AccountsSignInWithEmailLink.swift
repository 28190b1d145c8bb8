import Base
import Identity
import Messages

/// postern.v1.Accounts/SignInWithEmailLink
enum AccountsSignInWithEmailLink: SlowMethod {
    static func handle(
        _ request: AccountsSignInWithEmailLinkRequest, _ call: Call
    ) async throws -> AccountsSignInWithEmailLinkResponse {
        let address = try call.endUserAddress(request.endUserIP)
        if let again = try await call.repeatedChange(idToken: request.idToken) {
            return AccountsSignInWithEmailLinkResponse(
                user: again.user, tokens: again.tokens, deviceToken: call.deviceToken(for: again.user))
        }
        guard call.settings.allowsEmailLinkSignin else { throw Failure.operationNotAllowed }
        let verified = request.idToken.isEmpty ? nil : try call.verifiedUser(idToken: request.idToken)
        if request.email.isEmpty { throw Failure.missingEmail }
        let email = try Values.email(request.email, form: .toFind, limits: call.limits)
        guard !request.oobCode.isEmpty else { throw Failure.missingOobCode }
        let origin = try call.origin(deviceName: request.deviceName, address: address)
        let signedIn: SignedIn
        if let verified {
            try verified.requireRecentLogin(now: call.now)
            signedIn = try await call.project.link(
                emailLink: request.oobCode, email: email, to: verified, origin: origin, deadline: call.deadline)
        } else {
            signedIn = try await call.recordingRefusals(email: email) {
                try await call.project.signIn(
                    emailLink: request.oobCode, email: email, settings: call.settings, origin: origin,
                    deadline: call.deadline)
            }
        }
        call.forgiveGuesses(of: signedIn.user)
        return AccountsSignInWithEmailLinkResponse(
            user: signedIn.user, tokens: signedIn.tokens, isNewUser: signedIn.isNewUser,
            deviceToken: call.deviceToken(for: signedIn.user))
    }

    static func endUser(of request: AccountsSignInWithEmailLinkRequest) -> NamedEndUser {
        NamedEndUser(idToken: request.idToken, email: request.email)
    }
}
