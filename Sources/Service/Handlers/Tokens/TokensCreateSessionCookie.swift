import Base
import Identity
import Messages
import Rules
import Signing
import Store
import Tokens

/// postern.v1.Tokens/CreateSessionCookie
enum TokensCreateSessionCookie: SlowMethod {
    private static let shortest: Int64 = 300
    private static let longest = TokenSigner.cookieLifetimeMax.components.seconds

    static func handle(
        _ request: TokensCreateSessionCookieRequest, _ call: Call
    ) async throws -> TokensCreateSessionCookieResponse {
        guard !request.idToken.isEmpty else { throw Failure.missingIDToken }
        let seconds = request.validSeconds == 0 ? longest : request.validSeconds
        guard (shortest...longest).contains(seconds) else {
            throw Failure.invalid(
                .invalidDuration, field: "valid_seconds", "must be \(shortest) to \(longest), or 0 for the most")
        }
        let verified = try call.verifiedUser(idToken: request.idToken)
        try verified.requireRecentLogin(now: call.now)
        let sessionID = verified.token.sessionID
        guard let session = try call.project.store.read({ try $0.get(Tables.sessions, SessionKey(sessionID)) }) else {
            throw Failure.tokenExpired(cause: .signedOut)
        }
        // A client that verifies cookies by itself knows of no other end of the session.
        let sessionEnd = Timestamp(microseconds: session.createdAtMicros) + call.settings.sessionAbsolute
        let lifetime = min(.seconds(seconds), sessionEnd - call.now)
        let cookie = try await call.project.tokens.cookieIssuer.token(
            for: verified.account.user, session: session, sessionID: sessionID, settings: call.settings, now: call.now,
            lifetime: lifetime, deadline: call.deadline)
        if verified.account.hasNoWayIn {
            try await call.userSession(verified.account.user.uid).noteSessionCookie(until: cookie.expiresAt)
        }
        return TokensCreateSessionCookieResponse(
            sessionCookie: cookie.token, expiresAtMicros: cookie.expiresAt.microseconds)
    }
}
