import Base
import Messages

extension Auth {
    /// Signs a new user up. Throws emailAlreadyInUse, weakPassword, adminRestrictedOperation.
    @discardableResult
    public func createUser(
        withEmail email: String, password: String
    ) async throws -> AuthDataResult {
        try await signIn(providerID: EmailAuthProvider.id) { () throws(AuthError) in
            try await backend.signUp(email: email, password: password)
        }
    }

    /// Throws invalidCredential for an unknown email and a wrong password alike, unless the tenant lets anybody ask who
    /// has an account.
    @discardableResult
    public func signIn(withEmail email: String, password: String) async throws -> AuthDataResult {
        try await signIn(with: EmailAuthProvider.credential(withEmail: email, password: password))
    }

    /// `link` is the whole link that was mailed, or the code in it.
    @discardableResult
    public func signIn(withEmail email: String, link: String) async throws -> AuthDataResult {
        try await signIn(with: EmailAuthProvider.credential(withEmail: email, link: link))
    }

    /// Throws accountExistsWithDifferentCredential, with an `updatedCredential` to be linked after signing in another
    /// way, and what the credential's own kind is refused with.
    @discardableResult
    public func signIn(with credential: AuthCredential) async throws -> AuthDataResult {
        let isCustom = credential.provider == CustomTokenProvider.id
        return try await signIn(providerID: isCustom ? nil : credential.provider) { () throws(AuthError) in
            try await backend.signIn(credential)
        }
    }

    /// Signs a JWT's user in, of one of the project's service accounts.
    @discardableResult
    public func signIn(withCustomToken token: String) async throws -> AuthDataResult {
        try await signIn(with: CustomTokenProvider.credential(withToken: token))
    }

    /// Who is anonymous already stays who they are. Throws adminRestrictedOperation where the tenant has none.
    @discardableResult
    public func signInAnonymously() async throws -> AuthDataResult {
        if let user = currentUser, user.isAnonymous {
            return AuthDataResult(
                user: user, additionalUserInfo: AdditionalUserInfo(providerID: nil, isNewUser: false, profile: nil))
        }
        return try await signIn(providerID: nil) { () throws(AuthError) in try await backend.signUpAnonymously() }
    }

    private func signIn(
        providerID: String?, _ body: () async throws(AuthError) -> Answer
    ) async throws -> AuthDataResult {
        let asked = backend.clock.moment()
        let answer = try await cancellable(body)
        guard let pair = answer.tokens else { throw AuthError.malformedAnswer("tokens") }
        let user = User(answer.account, try TokenSet(pair, asked: asked), backend: backend)
        await become(user)
        return AuthDataResult(user, answer, providerID: providerID)
    }
}
