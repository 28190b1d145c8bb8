import Base
import Messages
import PosternClient
import Synchronization

// A sign-up whose answer this process, or an earlier process, did not get. With the id of the attempt the server gives
// the answer again. Sign-ups of one `Auth` go one after the other, so that there is one attempt at a time.

extension Auth {
    /// Signs up, or signs in with a custom token, and makes the user of the answer the current user. The storage gets
    /// the attempt's id before the call.
    ///
    /// If the answer gets lost, the same request has the same id when it comes again. Before another request, the
    /// outcome of the lost one is asked for.
    func signUp(
        _ backend: Backend, _ request: SignUpAttempt.Request, _ body: ([UInt8]) async throws(AuthError) -> Answer
    ) async throws -> (user: User, answer: Answer) {
        await signUps.take()
        defer { signUps.giveBack() }
        return try await cancellable { () async throws(AuthError) in
            try await signUpInTurn(backend, request, body)
        }
    }

    private func signUpInTurn(
        _ backend: Backend, _ request: SignUpAttempt.Request, _ body: ([UInt8]) async throws(AuthError) -> Answer
    ) async throws(AuthError) -> (user: User, answer: Answer) {
        try await settleInTurn(before: request, backend)
        let attempt = await beginSignUp(backend, request)
        let asked = backend.clock.moment()
        do throws(AuthError) {
            let answer = try await body(attempt.id)
            guard let pair = answer.tokens else { throw AuthError.malformedAnswer("tokens") }
            let user = User(answer.account, try TokenSet(pair, asked: asked), backend: backend)
            await become(user, endingSignUp: attempt.id)
            return (user: user, answer: answer)
        } catch {
            await signUpFailed(attempt, error)
            throw error
        }
    }

    /// Asks for the outcome of a sign-up whose answer was lost, unless `request` is the same one.
    func settleSignUp(before request: SignUpAttempt.Request, _ backend: Backend) async throws {
        await signUps.take()
        defer { signUps.giveBack() }
        try await cancellable { () async throws(AuthError) in try await settleInTurn(before: request, backend) }
    }

    private func settleInTurn(before request: SignUpAttempt.Request, _ backend: Backend) async throws(AuthError) {
        let now = backend.clock.monotonic()
        guard let open = state.withLock({ $0.signUpAttempt }),
            !open.isRepeated(by: request, tenantID: backend.tenantID, now: now)
        else { return }
        try await finishInTurn(open)
    }

    /// Returns the attempt for `request`: the one that lost its answer (with `isOpen`), or a new one. It is in the
    /// storage then, if the storage can be written; an error of the storage is reported.
    private func beginSignUp(_ backend: Backend, _ request: SignUpAttempt.Request) async -> SignUpAttempt {
        let now = backend.clock.monotonic()
        let attempt = state.withLock { state -> SignUpAttempt in
            if let open = state.signUpAttempt, open.isRepeated(by: request, tenantID: backend.tenantID, now: now) {
                state.signUpAttempt?.isOpen = false
                return open
            }
            let begun = SignUpAttempt(
                id: backend.newAttemptID(), tenantID: backend.tenantID, request: request, since: now, isOpen: false)
            state.signUpAttempt = begun
            return begun
        }
        await saveState()
        return attempt
    }

    /// Forgets an attempt that the server refused. An attempt that may have been done stays; so does one that lost its
    /// answer earlier, if the error of its repeat says nothing about it.
    private func signUpFailed(_ attempt: SignUpAttempt, _ error: AuthError) async {
        let staysOpen =
            attempt.isOpen
            ? error.leavesAttemptOpen : error.isLostAnswer || error.isCancellation || error.is(.channelClosed)
        guard staysOpen else { return await forgetSignUp(attempt) }
        state.withLock { state in
            if state.signUpAttempt?.id == attempt.id { state.signUpAttempt?.isOpen = true }
        }
    }

    /// Forgets this attempt, also in the storage. Another attempt stays.
    private func forgetSignUp(_ attempt: SignUpAttempt) async {
        let isForgotten = state.withLock { state in
            guard state.signUpAttempt?.id == attempt.id else { return false }
            state.signUpAttempt = nil
            return true
        }
        if isForgotten { await saveState() }
    }
}

extension Auth {
    /// Signs in the user of a sign-up whose answer was lost. If somebody is signed in by then, or the attempt was given
    /// up, the new session is ended instead. Offline, the attempt stays, for the next sign-up or the next run.
    func finishSignUp(_ attempt: SignUpAttempt) async {
        await signUps.take()
        defer { signUps.giveBack() }
        guard state.withLock({ $0.signUpAttempt?.id == attempt.id }) else { return }
        _ = try? await finishInTurn(attempt)
    }

    /// Throws an error that leaves the outcome open.
    private func finishInTurn(_ attempt: SignUpAttempt) async throws(AuthError) {
        let found: User
        do throws(AuthError) {
            found = try await user(ofSignUp: attempt)
        } catch {
            if error.leavesAttemptOpen, !error.is(.malformedResponse) { throw error }
            return await forgetSignUp(attempt)
        }
        // A user who is nobody's current user is signed out at the server when this function drops it.
        change { state in
            guard state.signUpAttempt?.id == attempt.id else { return nil }
            state.signUpAttempt = nil
            let isSignedIn = state.currentUser == nil
            if isSignedIn {
                found.addKeeper(self)
                state.currentUser = found
            }
            writer.enqueue(storageContent(of: state))
            return isSignedIn ? IDTokenEvent(user: found, change: .signedIn) : nil
        }
    }

    /// The user of a sign-up whose answer was lost, with the tokens of that answer. Nobody's current user yet.
    private func user(ofSignUp attempt: SignUpAttempt) async throws(AuthError) -> User {
        // Whatever `tenantID` says by now.
        var backend = configured
        backend.tenantID = attempt.tenantID
        let (accounts, tokens, tenantID) = (backend.accounts, backend.tokens, attempt.tenantID)
        let asked = backend.clock.moment()
        let request = TokensRefreshRequest(tenantID: tenantID, refreshToken: .empty, attemptID: attempt.id)
        let response = try await backend.call { try await tokens.refresh(request) }
        guard let pair = response.tokens else { throw AuthError.malformedAnswer("tokens") }
        let lookup = AccountsLookupRequest(tenantID: tenantID, idToken: pair.idToken)
        let account = try await backend.call { try await accounts.lookup(lookup) }.user
        let answer = try Answer(account, pair)
        return User(answer.account, try TokenSet(pair, asked: asked), backend: backend)
    }

    /// Takes the attempt out of the state, because the application signs out.
    func giveUpSignUp() -> SignUpAttempt? {
        state.withLock { state in
            defer { state.signUpAttempt = nil }
            return state.signUpAttempt
        }
    }

    /// Ends the session of a sign-up that was given up, as best effort.
    func endSession(ofSignUp attempt: SignUpAttempt) async {
        await signUps.take()
        defer { signUps.giveBack() }
        // The session ends with the object, which nobody keeps.
        _ = try? await user(ofSignUp: attempt)
    }
}
