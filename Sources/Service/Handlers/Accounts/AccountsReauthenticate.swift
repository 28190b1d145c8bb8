import Base
import Identity
import Messages

/// postern.v1.Accounts/Reauthenticate
enum AccountsReauthenticate: SlowMethod {
    static func handle(
        _ request: AccountsReauthenticateRequest, _ call: Call
    ) async throws -> AccountsReauthenticateResponse {
        let address = try call.endUserAddress(request.endUserIP)
        if let again = try await call.repeatedChange(idToken: request.idToken) { return response(again, request, call) }
        let verified = try call.verifiedUser(idToken: request.idToken)
        let signedIn: SignedIn
        switch request.credential {
        case .password(let credential):
            signedIn = try await byPassword(
                credential, verified, address: address, deviceToken: request.deviceToken, call)
        case .idp(let credential):
            let identity = try await call.provedIdentity(credential)
            signedIn = try await call.project.reauthenticate(
                verified, with: identity, origin: call.origin, deadline: call.deadline)
        case .emailLink(let credential):
            guard call.settings.allowsEmailLinkSignin else { throw Failure.operationNotAllowed }
            guard !credential.oobCode.isEmpty else { throw Failure.missingOobCode }
            signedIn = try await call.project.reauthenticate(
                verified, emailLink: credential.oobCode,
                email: try Values.email(credential.email, form: .toFind, limits: call.limits), origin: call.origin,
                deadline: call.deadline)
            call.forgiveGuesses(of: signedIn.user)
        case .customToken(let token):
            signedIn = try await byCustomToken(token, verified, call)
        case nil: throw Failure.invalid("MISSING_CREDENTIAL", field: "credential", "is required")
        }
        return response(signedIn, request, call)
    }

    private static func response(
        _ signedIn: SignedIn, _ request: AccountsReauthenticateRequest, _ call: Call
    ) -> AccountsReauthenticateResponse {
        AccountsReauthenticateResponse(
            user: signedIn.user, tokens: signedIn.tokens,
            deviceToken: call.deviceToken(for: signedIn.user, renewing: request.deviceToken))
    }

    static func endUser(of request: AccountsReauthenticateRequest) -> NamedEndUser {
        NamedEndUser(idToken: request.idToken)
    }

    private static func byPassword(
        _ credential: EmailPasswordCredential, _ verified: VerifiedUser, address: EndUserAddress?, deviceToken: Text,
        _ call: Call
    ) async throws -> SignedIn {
        guard call.settings.allowsPasswordSignup else { throw Failure.passwordLoginDisabled }
        return try await call.withPasswordProof(
            email: credential.email, password: credential.password, address: address, deviceToken: deviceToken
        ) { proof in
            guard proof.account.user.uid == verified.account.user.uid else { throw Failure.userMismatch }
            return try await call.project.reauthenticate(
                verified, as: SessionStart("password"), origin: call.origin, deadline: call.deadline
            ) { _, current in try current.requirePassword(of: proof.account) }
        }
    }

    private static func byCustomToken(
        _ token: Secret, _ verified: VerifiedUser, _ call: Call
    ) async throws -> SignedIn {
        let proved = try call.project.customTokens.verify(token, settings: call.settings, now: call.now)
        guard proved.uid == verified.account.user.uid else { throw Failure.userMismatch }
        return try await call.project.reauthenticate(
            verified, as: proved.start, origin: call.origin, deadline: call.deadline
        ) { [now = call.now] transaction, _ in try transaction.useTokenID(of: proved, now: now) }
    }
}
