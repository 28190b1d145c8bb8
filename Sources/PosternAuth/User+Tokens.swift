import Base
import Messages
import PosternClient
import Synchronization

extension User {
    /// Returns an ID token that is valid for more than five minutes. Refreshes it first if it is not, or if
    /// `forcingRefresh`.
    ///
    /// Callers that come during a refresh share it. A call with `forcingRefresh` shares only a refresh that is not sent
    /// yet, so that its token has the custom claims of that moment or later ones.
    ///
    /// Offline it throws a retryable networkError. The next call then repeats the same attempt, so that a lost answer
    /// never ends the session.
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
            try await tokens(forcingRefresh ? .askedFromNow : .valid)
        }
    }

    private enum Need {
        case nothing(TokenSet)
        /// `from`: the tokens that the first caller replaces.
        case refresh(RefreshWaiter, from: TokenSet, isFirst: Bool)
    }

    func tokens(_ wish: TokenWish) async throws(AuthError) -> TokenSet {
        let now = backend.clock.monotonic()
        let need = state.withLock { state -> Need in
            if wish == .valid, state.tokens.isValid(at: now) { return .nothing(state.tokens) }
            let waiter = RefreshWaiter(sentBefore: wish == .askedFromNow ? state.sentRefreshCount : nil)
            state.refreshWaiters.append(waiter)
            return .refresh(waiter, from: state.tokens, isFirst: state.refreshWaiters.count == 1)
        }
        switch need {
        case .nothing(let tokens): return tokens
        case .refresh(let waiter, let old, let isFirst):
            if isFirst {
                // A task of its own, so that a caller that is cancelled does not take away the answer of the others.
                Task { await self.refreshForAll(replacing: old, wish.cause) }
            }
            guard let result = try? await waiter.promise.cancellableValue() else { throw .cancelled }
            return try result.get()
        }
    }

    /// Refreshes until no caller waits. Callers that came too late for one refresh are served by the next.
    private func refreshForAll(replacing old: TokenSet, _ cause: TokenRefreshCause) async {
        var (old, cause) = (old, cause)
        while true {
            await turns.take()
            let result = await refreshOnce(replacing: old, cause)
            let (served, isLast) = state.withLock { state in
                let served = state.takeWaiters(servedBy: result)
                return (served, state.refreshWaiters.isEmpty)
            }
            turns.giveBack()
            for auth in observers { await auth.writer.settled() }
            for waiter in served { waiter.promise.succeed(result) }
            // If no caller was left, the next caller begins a task of its own.
            guard !isLast, case .success(let tokens) = result else { return }
            (old, cause) = (tokens, TokenWish.askedFromNow.cause)
        }
    }

    private func refreshOnce(
        replacing old: TokenSet, _ cause: TokenRefreshCause
    ) async -> Result<TokenSet, AuthError> {
        do throws(AuthError) {
            try await settleInTurn()
            // The call that had the turn before may have brought new tokens.
            let brought = state.withLock { $0.tokens != old && $0.servesAllWaiters ? $0.tokens : nil }
            if let brought { return .success(brought) }
            return .success(try await refreshInTurn(cause))
        } catch {
            return .failure(error)
        }
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
        let number = state.withLock { state in
            state.sentRefreshCount += 1
            return state.sentRefreshCount
        }
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
        let tokens = try TokenSet(pair, keeping: attempt.refreshToken, asked: asked)
        state.withLock { state in
            state.tokens = tokens
            state.attempt = nil
            state.answeredRefresh = number
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

extension TokenWish {
    fileprivate var cause: TokenRefreshCause { self == .askedFromNow ? .requested : .expired }
}

extension TokenSet {
    /// True if the session began without credentials.
    var areAnonymous: Bool {
        (try? IDTokenPayload(idToken))?.signInProvider == "anonymous"
    }
}

extension User.State {
    /// Whether the present tokens are new enough for all callers that wait.
    var servesAllWaiters: Bool { refreshWaiters.allSatisfy { $0.isServed(by: answeredRefresh) } }

    /// Takes the callers that get this result: an error is for all of them, tokens for those that came before their
    /// refresh was sent.
    mutating func takeWaiters(servedBy result: Result<TokenSet, AuthError>) -> [RefreshWaiter] {
        let (all, newest) = (refreshWaiters, answeredRefresh)
        guard case .success = result else {
            refreshWaiters = []
            return all
        }
        refreshWaiters = all.filter { !$0.isServed(by: newest) }
        return all.filter { $0.isServed(by: newest) }
    }

    /// Notes a new attempt to replace the present tokens.
    mutating func beginAttempt(id: [UInt8]) -> RefreshAttempt {
        let begun = RefreshAttempt(id: id, refreshToken: tokens.refreshToken)
        attempt = begun
        return begun
    }
}
