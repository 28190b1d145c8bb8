import Base
import Identity
import Messages

/// postern.v1.Accounts/SignInWithPhoneNumber
enum AccountsSignInWithPhoneNumber: SlowMethod {
    static func handle(
        _ request: AccountsSignInWithPhoneNumberRequest, _ call: Call
    ) async throws -> AccountsSignInWithPhoneNumberResponse {
        let shown: PhoneSignIn.Shown =
            request.temporaryProof.isEmpty
            ? .code(request.code, sessionInfo: request.sessionInfo)
            : .temporaryProof(request.temporaryProof, phoneNumber: request.phoneNumber)
        let outcome = try await call.project.signIns.signInOrLink(
            PhoneSignIn(
                shown, codes: call.project.verificationCodes, changesNumber: request.change),
            call.endUserRequest(
                idToken: request.idToken, endUserIP: request.endUserIP, deviceName: request.deviceName))
        return AccountsSignInWithPhoneNumberResponse(
            user: outcome.user, tokens: outcome.tokens, isNewUser: outcome.isNewUser,
            deviceToken: outcome.deviceToken)
    }

    static func endUser(of request: AccountsSignInWithPhoneNumberRequest) -> NamedEndUser {
        NamedEndUser(idToken: request.idToken)
    }
}
