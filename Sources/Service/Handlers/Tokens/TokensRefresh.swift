import Base
import Identity
import Messages
import Rules
import Store
import Tokens

/// postern.v1.Tokens/Refresh
enum TokensRefresh: SlowMethod {
    static func handle(_ request: TokensRefreshRequest, _ call: Call) async throws -> TokensRefreshResponse {
        guard request.attemptID.isEmpty || request.attemptID.count == 16 else {
            throw Failure.invalid(.invalidAttemptID, field: "attempt_id", "must be empty or 16 random bytes")
        }
        if request.refreshToken.isEmpty, !request.attemptID.isEmpty { return try await goOn(request.attemptID, call) }
        guard let token = call.project.refreshTokens.decode(request.refreshToken) else {
            throw Failure.invalidRefreshToken
        }
        guard let session = try call.project.store.read({ try $0.get(Tables.sessions, SessionKey(token.sessionID)) })
        else { throw Failure.sessionGone(token.sessionID, settings: call.settings, now: call.now) }
        guard session.tenantID == call.tenantID else {
            throw Failure.tenantMismatch(tokenOf: session.tenantID, request: call.tenantID)
        }
        let (signedIn, outcome) = try await call.userSession(session.uid).refresh(
            token, attemptID: request.attemptID, settings: call.settings, deadline: call.deadline)
        return TokensRefreshResponse(uid: signedIn.user.uid, tokens: signedIn.tokens, outcome: outcome)
    }

    /// The tokens of a sign-up or sign-in by custom token that was done under this attempt id and whose answer was
    /// lost.
    private static func goOn(_ attemptID: [UInt8], _ call: Call) async throws -> TokensRefreshResponse {
        let begun = try call.project.repeatedChanges.begunSession(
            attemptID: attemptID, caller: call.caller?.id ?? .empty, tenantID: call.tenantID,
            methods: [
                MethodDescriptor.accountsSignUp.fullName, MethodDescriptor.accountsSignInWithCustomToken.fullName,
            ])
        guard let begun else { throw Failure.invalidRefreshToken }
        let signedIn = try await call.userSession(begun.uid)
            .signedInAgain(begun.session, call.endUserRequest())
        return TokensRefreshResponse(uid: begun.uid, tokens: signedIn.tokens, outcome: .repeatedAfterLoss)
    }
}
