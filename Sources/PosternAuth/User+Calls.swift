import Base
import Messages
import PosternClient
import Synchronization

extension User {
    /// Calls the server with a valid ID token, in turn. If the server doubts the token, a refresh decides: a session
    /// that is over ends here; a token that only looked valid, because a clock was wrong, is replaced and the call
    /// repeated.
    ///
    /// When this returns, the storage has the result, or the end of the session: a process that ends then knows it
    /// after its next start.
    func inTurn<Result>(
        _ body: (Text) async throws(AuthError) -> Result
    ) async throws -> Result {
        try await cancellable { () async throws(AuthError) in try await takingTurn(body) }
    }

    private func takingTurn<Result>(
        _ body: (Text) async throws(AuthError) -> Result
    ) async throws(AuthError) -> Result {
        await turns.take()
        defer { turns.giveBack() }
        let outcome: Swift.Result<Result, AuthError>
        do throws(AuthError) { outcome = .success(try await calling(body)) } catch { outcome = .failure(error) }
        for auth in observers { await auth.writer.settled() }
        return try outcome.get()
    }

    private func calling<Result>(
        _ body: (Text) async throws(AuthError) -> Result
    ) async throws(AuthError) -> Result {
        try await settleInTurn()
        let current = state.withLock { $0.tokens }
        let isValid = current.isValid(at: backend.clock.monotonic())
        let tokens = isValid ? current : try await refreshInTurn(.expired)
        do throws(AuthError) {
            return try await body(tokens.idToken)
        } catch {
            guard error.doubtsIDToken else { throw error }
            let renewed = try await refreshInTurn(.expired, doubt: error)
            guard error.is(.tokenExpired) || error.is(.invalidIDToken) else { throw error }
            return try await body(renewed.idToken)
        }
    }

    /// Makes a change whose answer replaces the tokens. The change is made once, and its answer is asked for until it
    /// comes: here, and before this user's next call. Cancelling the task does not stop the change: half of it would be
    /// useless.
    func exchange(
        _ cause: TokenRefreshCause,
        _ change: @escaping @Sendable (Text, CallOptions) async throws(AuthError) -> Answer
    ) async throws -> Answer {
        try Task.checkCancellation()
        let task = Task { () async -> Result<Answer, AuthError> in
            do throws(AuthError) {
                return .success(
                    try await self.takingTurn { idToken throws(AuthError) in
                        try await self.exchangeInTurn(idToken, cause, change)
                    })
            } catch {
                return .failure(error)
            }
        }
        let outcome = await task.value
        return try await cancellable { () throws(AuthError) in try outcome.get() }
    }

    private func exchangeInTurn(
        _ idToken: Text, _ cause: TokenRefreshCause,
        _ change: @escaping @Sendable (Text, CallOptions) async throws(AuthError) -> Answer
    ) async throws(AuthError) -> Answer {
        // A refresh whose answer is not known may have moved the session on already. The server could not tell a change
        // after it from the change of a thief.
        var idToken = idToken
        if state.withLock({ $0.attempt != nil }) { idToken = try await refreshInTurn(.expired).idToken }
        let attempt = await beginAttempt()
        let asked = backend.clock.moment()
        var options = CallOptions(idempotencyKey: Hex.encode(attempt.id))
        do throws(AuthError) {
            let answer: Answer
            do throws(AuthError) {
                answer = try await change(idToken, options)
            } catch {
                guard error.is(.tooManyIdempotencyKeys) else { throw error }
                options = CallOptions()
                answer = try await change(idToken, options)
            }
            endAttempt(attempt)
            try apply(answer, asked: asked, cause: cause)
            return answer
        } catch {
            if error.isLostAnswer, !options.idempotencyKey.isEmpty {
                let lost = LostChange(since: asked.monotonic, cause: cause) { [idToken, options] () throws(AuthError) in
                    try await change(idToken, options)
                }
                state.withLock { $0.lostChange = lost }
            } else {
                endAttempt(attempt)
            }
            throw error
        }
    }

    /// Notes in the storage that a change is under way.
    ///
    /// The change's idempotency key is also the id of a refresh attempt. If this process ends before it has the answer,
    /// the next process refreshes with that id, and continues with the session that the change left. The change itself
    /// is not stored, because it may hold a password.
    private func beginAttempt() async -> RefreshAttempt {
        let attempt = state.withLock { $0.beginAttempt(id: backend.newAttemptID()) }
        // The writer reports an error of the storage; the change is made all the same.
        for auth in observers { await auth.save(user: self) }
        return attempt
    }

    /// Forgets the attempt: the result of the change is known.
    private func endAttempt(_ attempt: RefreshAttempt) {
        state.withLock { state in
            if state.attempt == attempt { state.attempt = nil }
        }
    }

    /// Asks again for the answer that an earlier change lost, so that no call presents tokens which the change may have
    /// ended. Throws while there is no answer. A refusal means that the change was not done and will not be.
    func settleInTurn() async throws(AuthError) {
        guard let lost = state.withLock({ $0.lostChange }) else { return }
        let asked = backend.clock.moment()
        if asked.monotonic < lost.since.advanced(by: LostChange.lifetime) {
            do throws(AuthError) {
                try apply(try await lost.again(), asked: asked, cause: lost.cause)
            } catch {
                if error.isRetryable { throw error }
            }
        }
        state.withLock { $0.lostChange = nil }
    }
}
