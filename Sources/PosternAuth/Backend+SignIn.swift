import Base
import Messages
import PosternClient

extension Backend {
    func signUp(email: String, password: String, _ attempt: [UInt8]) async throws(AuthError) -> Answer {
        let request = AccountsSignUpRequest(
            tenantID: tenantID, email: try text(email, .invalidEmail), password: try secret(password, .weakPassword),
            endUserIP: endUserIP, deviceName: deviceName)
        return try await signUp(request, attempt)
    }

    func signUpAnonymously(_ attempt: [UInt8]) async throws(AuthError) -> Answer {
        let request = AccountsSignUpRequest(tenantID: tenantID, endUserIP: endUserIP, deviceName: deviceName)
        return try await signUp(request, attempt)
    }

    private func signUp(_ request: AccountsSignUpRequest, _ attempt: [UInt8]) async throws(AuthError) -> Answer {
        let response = try await callOnce(attempt) { try await accounts.signUp(request, options: $0) }
        return try answer(response.user, response.tokens, deviceToken: response.deviceToken, isNewUser: true)
    }

    /// Signs in. Some custom tokens work only once, so their answer must not be lost.
    func signIn(_ credential: AuthCredential, _ attempt: [UInt8]) async throws(AuthError) -> Answer {
        guard case .customToken(let token) = credential.kind else { return try await signInOrLink(credential) }
        let request = AccountsSignInWithCustomTokenRequest(
            tenantID: tenantID, token: try secret(token, .invalidCustomToken), endUserIP: endUserIP,
            deviceName: deviceName)
        let response = try await callOnce(attempt) { try await accounts.signInWithCustomToken(request, options: $0) }
        return try answer(
            response.user, response.tokens, deviceToken: response.deviceToken, isNewUser: response.isNewUser)
    }

    /// Links the credential to the ID token's user.
    func link(
        _ credential: AuthCredential, to idToken: Text, _ options: CallOptions
    ) async throws(AuthError) -> Answer {
        switch credential.kind {
        case .password(let email, let password):
            let request = AccountsSignUpRequest(
                tenantID: tenantID, email: try text(email, .invalidEmail),
                password: try secret(password, .weakPassword), endUserIP: endUserIP, idToken: idToken)
            let response = try await call { try await accounts.signUp(request, options: options) }
            return try answer(response.user, response.tokens, deviceToken: response.deviceToken)
        case .customToken:
            throw AuthError(
                .invalidCredentialOrProviderID,
                "A custom token signs in and proves again; it cannot be linked.")
        case .emailLink, .idToken, .accessToken, .authorizationCode, .pending, .phone, .temporaryProof:
            return try await signInOrLink(credential, linkingTo: idToken, options)
        }
    }

    /// Signs in or, with an ID token, links: the same methods of the server do both.
    private func signInOrLink(
        _ credential: AuthCredential, linkingTo idToken: Text = .empty, _ options: CallOptions = .init()
    ) async throws(AuthError) -> Answer {
        switch credential.kind {
        case .password(let email, let password):
            let request = AccountsSignInWithPasswordRequest(
                tenantID: tenantID, email: try text(email, .invalidEmail),
                password: try givenPassword(password), endUserIP: endUserIP, deviceName: deviceName,
                deviceToken: device.token)
            let response = try await call { try await accounts.signInWithPassword(request, options: options) }
            return try answer(response.user, response.tokens, deviceToken: response.deviceToken)
        case .emailLink(let email, let code):
            let proof = try emailLink(email, code)
            let request = AccountsSignInWithEmailLinkRequest(
                tenantID: tenantID, email: proof.email, oobCode: proof.oobCode, idToken: idToken,
                endUserIP: endUserIP, deviceName: deviceName)
            let response = try await call { try await accounts.signInWithEmailLink(request, options: options) }
            return try answer(
                response.user, response.tokens, deviceToken: response.deviceToken, isNewUser: response.isNewUser)
        case .phone, .temporaryProof:
            return try await signInWithPhone(credential, linkingTo: idToken, options)
        case .idToken, .accessToken, .authorizationCode, .pending, .customToken:
            let request = AccountsSignInWithIdpRequest(
                tenantID: tenantID, credential: try identity(credential), idToken: idToken, endUserIP: endUserIP,
                deviceName: deviceName)
            let response = try await call(attempting: credential) {
                try await accounts.signInWithIdp(request, options: options)
            }
            return try answer(
                response.user, response.tokens, deviceToken: response.deviceToken, isNewUser: response.isNewUser,
                provider: response.provider)
        }
    }

    func reauthenticate(
        _ credential: AuthCredential, _ idToken: Text, _ options: CallOptions
    ) async throws(AuthError) -> Answer {
        let proof: AccountsReauthenticateRequest.Credential
        switch credential.kind {
        case .password(let email, let password):
            proof = .password(
                EmailPasswordCredential(
                    email: try text(email, .invalidEmail), password: try givenPassword(password)))
        case .emailLink(let email, let code): proof = .emailLink(try emailLink(email, code))
        case .customToken(let token): proof = .customToken(try secret(token, .invalidCustomToken))
        case .phone: proof = .phone(try phone(credential))
        case .temporaryProof:
            throw AuthError(
                .invalidCredentialOrProviderID, "This credential signs in to another account; it proves nothing here.")
        case .idToken, .accessToken, .authorizationCode, .pending: proof = .idp(try identity(credential))
        }
        let request = AccountsReauthenticateRequest(
            tenantID: tenantID, idToken: idToken, credential: proof, endUserIP: endUserIP,
            deviceToken: device.token)
        let response = try await call(attempting: credential) {
            try await accounts.reauthenticate(request, options: options)
        }
        return try answer(response.user, response.tokens, deviceToken: response.deviceToken)
    }

    /// Refuses an empty password, which no account has.
    private func givenPassword(_ password: Secret) throws(AuthError) -> Secret {
        guard password.withBytes({ !$0.isEmpty }) else {
            throw AuthError(.missingPassword, as: .wrongPassword, "The password is empty.")
        }
        return try secret(password, .wrongPassword)
    }

    private func emailLink(_ email: String, _ code: Secret) throws(AuthError) -> EmailLinkCredential {
        EmailLinkCredential(
            email: try text(email, .invalidEmail),
            oobCode: try secret(code, .invalidActionCode))
    }

    func identity(_ credential: AuthCredential) throws(AuthError) -> IdpCredential {
        var identity = IdpCredential(providerID: try text(credential.provider, .invalidProviderID))
        switch credential.kind {
        case .idToken(let token, let rawNonce):
            identity.credential = .providerIDToken(try secret(token, .invalidCredential))
            identity.nonce = try text(rawNonce, .missingOrInvalidNonce)
        case .accessToken(let token):
            identity.credential = .providerAccessToken(try secret(token, .invalidCredential))
        case .authorizationCode(let code, let redirectURI, let verifier, let rawNonce):
            identity.credential = .authorizationCode(try secret(code, .invalidCredential))
            identity.redirectURI = try text(redirectURI, .invalidCredential)
            identity.codeVerifier = try secret(verifier, .invalidCredential)
            identity.nonce = try text(rawNonce, .missingOrInvalidNonce)
        case .pending(let token): identity.credential = .pendingToken(try secret(token, .invalidCredential))
        case .password, .emailLink, .customToken, .phone, .temporaryProof: break
        }
        return identity
    }

    /// The verification ID and the code of a credential.
    func phone(_ credential: PhoneAuthCredential) throws(AuthError) -> PhoneCredential {
        guard case .phone(let verificationID, let code) = credential.kind else {
            throw AuthError(.invalidCredentialOrProviderID, "The credential is not one of an SMS code.")
        }
        return PhoneCredential(
            sessionInfo: try secret(verificationID, .invalidVerificationID),
            code: try secret(code, .invalidVerificationCode))
    }
}
