import Base
import Identity
import Messages

/// postern.v1.Accounts/SignInWithPassword
enum AccountsSignInWithPassword: SlowMethod {
    static func handle(
        _ request: AccountsSignInWithPasswordRequest, _ call: Call
    ) async throws -> AccountsSignInWithPasswordResponse {
        let address = try call.endUserAddress(request.endUserIP)
        guard call.settings.allowsPasswordSignup else { throw Failure.passwordLoginDisabled }
        let origin = try call.origin(deviceName: request.deviceName, address: address)
        let signedIn = try await call.withPasswordProof(
            email: request.email, password: request.password, address: address, deviceToken: request.deviceToken
        ) { proof in
            if call.settings.passwordPolicy.forceUpgradeOnSignIn {
                try call.settings.passwordPolicy.require(request.password)
            }
            return try await call.userSession(proof.account.user.uid).signInWithPassword(
                verified: proof.account, newHash: proof.newHash, settings: call.settings, origin: origin,
                deadline: call.deadline)
        }
        return AccountsSignInWithPasswordResponse(
            user: signedIn.user, tokens: signedIn.tokens,
            deviceToken: call.deviceToken(for: signedIn.user, renewing: request.deviceToken))
    }

    static func endUser(of request: AccountsSignInWithPasswordRequest) -> NamedEndUser {
        NamedEndUser(email: request.email)
    }
}
