import Base
import Messages
import PosternClient
import Synchronization

extension User {
    /// Returns an ID token that is valid for more than five minutes. Refreshes it first if it is not, or if
    /// `forcingRefresh`.
    ///
    /// Callers that come during a refresh share it. Offline it throws a retryable networkError. The next call then
    /// repeats the same attempt, so that a lost answer never ends the session.
    public func idToken(forcingRefresh: Bool = false) async throws -> String {
        try await tokens(forcingRefresh: forcingRefresh).idToken.string
    }

    /// Returns an ID token as `idToken(forcingRefresh:)` does, with its claims.
    public func idTokenResult(forcingRefresh: Bool = false) async throws -> AuthTokenResult {
        try AuthTokenResult(await tokens(forcingRefresh: forcingRefresh).idToken)
    }

    /// FirebaseAuth's name for `idToken(forcingRefresh:)`.
    public func getIDToken(forcingRefresh: Bool = false) async throws -> String {
        try await idToken(forcingRefresh: forcingRefresh)
    }

    /// FirebaseAuth's name for `idTokenResult(forcingRefresh:)`.
    public func getIDTokenResult(forcingRefresh: Bool = false) async throws -> AuthTokenResult {
        try await idTokenResult(forcingRefresh: forcingRefresh)
    }

    private func tokens(forcingRefresh: Bool) async throws -> TokenSet {
        try await cancellable { () async throws(AuthError) in
            try await validTokens(forced: forcingRefresh, cause: forcingRefresh ? .requested : .expired)
        }
    }

    private enum Need {
        case nothing(TokenSet)
        /// `from`: the tokens that the first caller replaces.
        case refresh(Promise<Result<TokenSet, AuthError>>, from: TokenSet, isFirst: Bool)
    }

    func validTokens(forced: Bool, cause: TokenRefreshCause) async throws(AuthError) -> TokenSet {
        let now = backend.clock.monotonic()
        let need = state.withLock { state -> Need in
            guard forced || !state.tokens.isValid(at: now) else { return .nothing(state.tokens) }
            let promise = Promise<Result<TokenSet, AuthError>>()
            state.refreshWaiters.append(promise)
            return .refresh(promise, from: state.tokens, isFirst: state.refreshWaiters.count == 1)
        }
        switch need {
        case .nothing(let tokens): return tokens
        case .refresh(let promise, let old, let isFirst):
            if isFirst {
                // A task of its own, so that a caller that is cancelled does not take away the answer of the others.
                Task { await self.refreshForAll(replacing: old, cause: cause) }
            }
            guard let result = try? await promise.cancellableValue() else { throw .cancelled }
            return try result.get()
        }
    }

    private func refreshForAll(replacing old: TokenSet, cause: TokenRefreshCause) async {
        await turns.take()
        let result: Result<TokenSet, AuthError>
        do throws(AuthError) {
            try await settleInTurn()
            let current = state.withLock { $0.tokens }
            // The call that had the turn before may have brought new tokens.
            result = .success(current == old ? try await refreshInTurn(cause) : current)
        } catch {
            result = .failure(error)
        }
        turns.giveBack()
        for auth in observers { await auth.writer.settled() }
        let waiters = state.withLock { state in
            defer { state.refreshWaiters = [] }
            return state.refreshWaiters
        }
        for waiter in waiters { waiter.succeed(result) }
    }

    /// Exchanges the refresh token once. The caller has the turn.
    ///
    /// The attempt is in the storage before it is sent, and is repeated until an answer is known. `doubt` is the error
    /// of the call that made this refresh necessary: the server cannot tell why it no longer knows a token.
    func refreshInTurn(
        _ cause: TokenRefreshCause, doubt: AuthError? = nil
    ) async throws(AuthError) -> TokenSet {
        let attempt = state.withLock { state in
            if let attempt = state.attempt, attempt.refreshToken == state.tokens.refreshToken { return attempt }
            return state.beginAttempt(id: backend.newAttemptID())
        }
        // The writer reports an error of the storage. Without the refresh the user would be signed out for that error.
        for auth in observers { await auth.save(user: self) }
        let asked = backend.clock.moment()
        let request = TokensRefreshRequest(
            tenantID: backend.tenantID, refreshToken: attempt.refreshToken, attemptID: attempt.id)
        let response: TokensRefreshResponse
        do throws(AuthError) {
            response = try await backend.call { try await backend.tokens.refresh(request) }
        } catch {
            guard error.endsSession else { throw error }
            let reason = await whySessionEnded(error, doubt: doubt)
            end(reason)
            throw reason
        }
        guard let pair = response.tokens else { throw .malformedAnswer("tokens") }
        let tokens = try TokenSet(pair, asked: asked)
        state.withLock { state in
            state.tokens = tokens
            state.attempt = nil
        }
        for auth in observers { auth.userChanged(self, .tokenRefreshed(cause)) }
        return tokens
    }
}

extension User {
    /// The reason why a refresh was refused for good. A deleted account has no session left that could tell the reason,
    /// but a call with the ID token still gets it.
    private func whySessionEnded(_ refusal: AuthError, doubt: AuthError?) async -> AuthError {
        if refusal.is(.userDisabled) || refusal.is(.userNotFound) { return refusal }
        if let doubt, doubt.endsSession {
            let doubtTellsMore = refusal.is(.invalidRefreshToken) || doubt.is(.userNotFound)
            return doubtTellsMore ? doubt : refusal
        }
        let idToken = state.withLock { $0.tokens.idToken }
        let request = AccountsLookupRequest(tenantID: backend.tenantID, idToken: idToken)
        do throws(AuthError) {
            _ = try await backend.call { try await backend.accounts.lookup(request) }
            return refusal
        } catch {
            return error.is(.userNotFound) ? error : refusal
        }
    }
}

extension TokenSet {
    /// True if the session began without credentials.
    var areAnonymous: Bool {
        (try? IDTokenPayload(idToken))?.signInProvider == "anonymous"
    }
}

extension User.State {
    /// Notes a new attempt to replace the present tokens.
    mutating func beginAttempt(id: [UInt8]) -> RefreshAttempt {
        let begun = RefreshAttempt(id: id, refreshToken: tokens.refreshToken)
        attempt = begun
        return begun
    }
}
