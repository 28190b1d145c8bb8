import Identity
import Messages

/// postern.v1.Accounts/SignInWithCustomToken
enum AccountsSignInWithCustomToken: SlowMethod {
    static func handle(
        _ request: AccountsSignInWithCustomTokenRequest, _ call: Call
    ) async throws -> AccountsSignInWithCustomTokenResponse {
        let address = try call.endUserAddress(request.endUserIP)
        let token = try call.project.customTokens.verify(request.token, settings: call.settings, now: call.now)
        let origin = try call.origin(deviceName: request.deviceName, address: address)
        let signedIn = try await call.recordingRefusals(uid: token.uid) {
            try await call.project.signIn(
                token, settings: call.settings, origin: origin, deadline: call.deadline)
        }
        return AccountsSignInWithCustomTokenResponse(
            user: signedIn.user, tokens: signedIn.tokens, isNewUser: signedIn.isNewUser,
            deviceToken: call.deviceToken(for: signedIn.user))
    }
}
