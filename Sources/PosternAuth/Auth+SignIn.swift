import Base
import Messages

extension Auth {
    /// Signs a new user up. Throws emailAlreadyInUse, weakPassword, adminRestrictedOperation.
    @discardableResult
    public func createUser(
        withEmail email: String, password: String
    ) async throws -> AuthDataResult {
        try await signIn(providerID: EmailAuthProvider.id, isBegun: true) { attempt throws(AuthError) in
            try await backend.signUp(email: email, password: password, attempt)
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
        return try await signIn(
            providerID: isCustom ? nil : credential.provider, isBegun: isCustom
        ) { attempt throws(AuthError) in
            try await backend.signIn(credential, attempt)
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
        return try await signIn(providerID: nil, isBegun: true) { attempt throws(AuthError) in
            try await backend.signUpAnonymously(attempt)
        }
    }

    /// `isBegun`: the server can be asked again for the answer by the attempt alone, so that the storage has it first.
    private func signIn(
        providerID: String?, isBegun: Bool, _ body: ([UInt8]) async throws(AuthError) -> Answer
    ) async throws -> AuthDataResult {
        let attempt = backend.random.bytes(RefreshAttempt.idByteCount)
        if isBegun { await keepBegun(attempt) }
        let asked = backend.clock.moment()
        let answer: Answer
        do {
            answer = try await cancellable { () throws(AuthError) in try await body(attempt) }
        } catch {
            // What was refused did not begin anything; the user of before, or nobody, is in the storage again.
            if isBegun, (error as? AuthError)?.isLostAnswer == false { await keepBegun(nil) }
            throw error
        }
        guard let pair = answer.tokens else { throw AuthError.malformedAnswer("tokens") }
        let user = User(answer.account, try TokenSet(pair, asked: asked), backend: backend)
        await become(user)
        return AuthDataResult(user, answer, providerID: providerID)
    }
}
