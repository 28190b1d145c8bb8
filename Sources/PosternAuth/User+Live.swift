import Base
import Messages
import PosternClient
import Synchronization

extension User {
    /// Handles a message that the server sent by itself. Returns false after the last one.
    ///
    /// The message is handled in turn. A call under way may have caused the message and bring the news itself, or it
    /// may have begun before. Only the server knows which of the two is newer, so it is asked.
    func take(_ told: SessionsWatchAuthStateResponse) async -> Bool {
        let answerCount = state.withLock { $0.answerCount }
        await turns.take()
        defer { turns.giveBack() }
        if let end = AuthError(endingBy: told) {
            let isKnown = state.withLock { $0.isOver }
            if !isKnown { self.end(end) }
            return false
        }
        // New tokens of others who share the session change nothing for ours, but their message carries the user.
        guard let account = told.user, account.uid.bytes.elementsEqual(uid.utf8) else { return true }
        let (isAlone, idToken) = state.withLock { ($0.answerCount == answerCount, $0.tokens.idToken) }
        if isAlone {
            changed(account, nil)
        } else if let present = await present(idToken) {
            changed(present, nil)
        }
        return true
    }

    /// The account as it is now. Nil while the server cannot be reached.
    private func present(_ idToken: Text) async -> Messages.User? {
        let request = AccountsLookupRequest(tenantID: backend.tenantID, idToken: idToken)
        return try? await backend.call { try await backend.accounts.lookup(request) }.user
    }

    /// Replaces tokens that the server refused outside of a call: a refresh decides whether the session is over, unless
    /// another refresh already has.
    func renew(_ refused: TokenSet, doubt: AuthError) async throws(AuthError) -> TokenSet {
        await turns.take()
        defer { turns.giveBack() }
        try await settleInTurn()
        let current = state.withLock { $0.tokens }
        return current == refused ? try await refreshInTurn(.expired, doubt: doubt) : current
    }
}

extension AuthError {
    /// The error with which the next call would be refused. Nil while the session lives.
    fileprivate init?(endingBy told: SessionsWatchAuthStateResponse) {
        let failure: Failure
        switch told.change {
        case .signedOut:
            failure = Failure(
                .tokenExpired, "The session is over; sign in again.",
                metadata: [Failure.Entry("cause", told.endCause.string)])
        case .disabled:
            failure = Failure(.userDisabled, "An administrator disabled the account.")
        case .deleted: failure = Failure(.userNotFound, "The account was deleted.")
        case .unspecified, .initial, .tokenRefreshed, .profileChanged: return nil
        }
        self.init(failure)
    }
}
