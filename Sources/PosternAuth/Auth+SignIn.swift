import Base
import Messages

extension Auth {
    /// Signs up a new user with a password and makes it the current user.
    ///
    /// Throws emailAlreadyInUse, invalidEmail, weakPassword, passwordDoesNotMeetRequirements, and
    /// adminRestrictedOperation where the tenant has sign-up off.
    @discardableResult
    public func createUser(
        withEmail email: String, password: String
    ) async throws -> AuthDataResult {
        let request = SignUpAttempt.Request.password(email: Secret(email), password: Secret(password))
        return try await signIn(providerID: EmailAuthProvider.id, signingUp: request) {
            backend, attempt throws(AuthError) in
            try await backend.signUp(email: email, password: password, attempt)
        }
    }

    /// Signs in with a password.
    ///
    /// Throws invalidCredential for an unknown email and for a wrong password alike. Only a tenant without
    /// email-enumeration protection tells them apart, as userNotFound and wrongPassword.
    @discardableResult
    public func signIn(withEmail email: String, password: String) async throws -> AuthDataResult {
        try await signIn(with: EmailAuthProvider.credential(withEmail: email, password: password))
    }

    /// Signs in with a mailed link. `link` is the whole link or the code in it.
    ///
    /// Throws expiredActionCode, invalidActionCode, and invalidEmail for another email than the one that got the link.
    @discardableResult
    public func signIn(withEmail email: String, link: String) async throws -> AuthDataResult {
        try await signIn(with: EmailAuthProvider.credential(withEmail: email, link: link))
    }

    /// Signs in with a credential of any kind.
    ///
    /// Throws an error that depends on the kind of credential, for example invalidCredential. Throws
    /// accountExistsWithDifferentCredential when an account has the email already and signs in another way: sign in
    /// that way, then link the error's `updatedCredential`. Throws secondFactorRequired, as every method that signs in
    /// does, with a `multiFactorResolver` for a user who has a second factor.
    @discardableResult
    public func signIn(with credential: AuthCredential) async throws -> AuthDataResult {
        let isCustom = credential.provider == CustomTokenProvider.id
        let request: SignUpAttempt.Request? =
            if case .customToken(let token) = credential.kind { .customToken(token) } else { nil }
        return try await signIn(
            providerID: isCustom ? nil : credential.provider, signingUp: request
        ) { backend, attempt throws(AuthError) in
            try await backend.signIn(credential, attempt)
        }
    }

    /// Signs in the user that a custom token names. One of the project's service accounts has signed the token.
    ///
    /// Throws invalidCustomToken, customTokenMismatch.
    @discardableResult
    public func signIn(withCustomToken token: String) async throws -> AuthDataResult {
        try await signIn(with: CustomTokenProvider.credential(withToken: token))
    }

    /// Signs up and signs in a user without credentials.
    ///
    /// An anonymous user of this tenant who is the current user already stays. Throws adminRestrictedOperation where
    /// the tenant has anonymous users or sign-up off.
    @discardableResult
    public func signInAnonymously() async throws -> AuthDataResult {
        if let present = currentAnonymously() { return present }
        // If the answer to an earlier sign-up was lost, its user may be anonymous.
        try await settleSignUp(before: .anonymous, backend)
        if let present = currentAnonymously() { return present }
        return try await signIn(providerID: nil, signingUp: .anonymous) { backend, attempt throws(AuthError) in
            try await backend.signUpAnonymously(attempt)
        }
    }

    /// The current user, if that is an anonymous user of this tenant.
    private func currentAnonymously() -> AuthDataResult? {
        guard let user = currentUser, user.isAnonymous, user.backend.tenantID == backend.tenantID else { return nil }
        return AuthDataResult(
            user: user, additionalUserInfo: AdditionalUserInfo(providerID: nil, isNewUser: false, profile: nil))
    }

    /// `request`: set for sign-ups and custom tokens, whose answer the server gives again for the attempt's id alone.
    /// `body` gets the tenant of this moment: `tenantID` may change before the call.
    private func signIn(
        providerID: String?, signingUp request: SignUpAttempt.Request?,
        _ body: (Backend, [UInt8]) async throws(AuthError) -> Answer
    ) async throws -> AuthDataResult {
        let backend = backend
        do {
            let signedIn: (user: User, answer: Answer)
            if let request {
                signedIn = try await signUp(backend, request) { attempt throws(AuthError) in
                    try await body(backend, attempt)
                }
            } else {
                signedIn = try await signIn(backend) { attempt throws(AuthError) in
                    try await body(backend, attempt)
                }
            }
            return AuthDataResult(signedIn.user, signedIn.answer, providerID: providerID)
        } catch let error as AuthError {
            let refused = RefusedSignIn(backend: backend, auth: self, providerID: providerID) { call in
                try await self.signIn(backend) { attempt throws(AuthError) in try await backend.once(attempt, call) }
            }
            throw error.withPendingSignIn(refused)
        }
    }

    /// Makes the user of the answer the current user.
    func signIn(
        _ backend: Backend, _ body: ([UInt8]) async throws(AuthError) -> Answer
    ) async throws -> (user: User, answer: Answer) {
        let attempt = backend.newAttemptID()
        let asked = backend.clock.moment()
        let answer = try await cancellable { () throws(AuthError) in try await body(attempt) }
        guard let pair = answer.tokens else { throw AuthError.malformedAnswer("tokens") }
        let user = User(answer.account, try TokenSet(pair, asked: asked), backend: backend)
        await become(user)
        return (user, answer)
    }
}
