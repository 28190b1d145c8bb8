import Base
import Messages
import PosternClient
import Synchronization

/// A change whose answer was lost. It may have ended the tokens that are held here; the same request under the same key
/// brings those it made.
struct LostChange: Sendable {
    let since: Instant
    let cause: TokenRefreshCause
    let again: @Sendable () async throws(AuthError) -> Answer

    /// The server answers again for an hour; no ID token lives longer.
    static let lifetime = Duration.hours(1)
}

extension User {
    /// Calls the server with a good ID token, in turn. When it doubts the token, a refresh decides: a session that is
    /// over ends here, and a token that only looked good, because a clock did not, is replaced and the call repeated.
    ///
    /// What the call brought is in the storage when this returns: a process that ends then knows it when it is back.
    func inTurn<Result>(
        _ body: (Text) async throws(AuthError) -> Result
    ) async throws(AuthError) -> Result {
        await turns.take()
        defer { turns.giveBack() }
        let result = try await calling(body)
        for auth in observers { await auth.writer.settled() }
        return result
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
            guard error.reason == "TOKEN_EXPIRED" || error.reason == "INVALID_ID_TOKEN" else { throw error }
            return try await body(renewed.idToken)
        }
    }

    /// A change whose answer replaces the tokens. It is done once, and its answer asked for until it comes: here, and
    /// before this user's next call. Cancelling the task does not cut it short: half of it would be of no use.
    func exchange(
        _ cause: TokenRefreshCause,
        _ change: @escaping @Sendable (Text, CallOptions) async throws(AuthError) -> Answer
    ) async throws(AuthError) -> Answer {
        if Task.isCancelled { throw .cancelled }
        let task = Task { () async -> Result<Answer, AuthError> in
            do throws(AuthError) {
                return .success(
                    try await self.inTurn { idToken throws(AuthError) in
                        try await self.exchangeInTurn(idToken, cause, change)
                    })
            } catch {
                return .failure(error)
            }
        }
        return try await task.value.get()
    }

    private func exchangeInTurn(
        _ idToken: Text, _ cause: TokenRefreshCause,
        _ change: @escaping @Sendable (Text, CallOptions) async throws(AuthError) -> Answer
    ) async throws(AuthError) -> Answer {
        let asked = backend.clock.moment()
        var options = backend.onceOptions()
        do throws(AuthError) {
            let answer: Answer
            do throws(AuthError) {
                answer = try await change(idToken, options)
            } catch {
                guard error.reason == "TOO_MANY_IDEMPOTENCY_KEYS" else { throw error }
                options = CallOptions()
                answer = try await change(idToken, options)
            }
            try apply(answer, asked: asked, cause: cause)
            return answer
        } catch {
            if error.isLostAnswer, !options.idempotencyKey.isEmpty {
                let lost = LostChange(since: asked.monotonic, cause: cause) { [options] () throws(AuthError) in
                    try await change(idToken, options)
                }
                state.withLock { $0.lostChange = lost }
            }
            throw error
        }
    }

    /// Asks again for the answer that an earlier change lost, so that nothing presents tokens which it may have ended.
    /// Throws while it cannot be had; a refusal says that the change was not done and will not be.
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
