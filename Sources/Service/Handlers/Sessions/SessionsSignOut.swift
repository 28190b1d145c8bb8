import Base
import Identity
import Messages
import Rules
import Store
import Tokens

/// postern.v1.Sessions/SignOut
enum SessionsSignOut: SlowMethod {
    static func purpose(of request: SessionsSignOutRequest, _ rule: MethodDescriptor) -> WritePurpose { .removal }

    static func handle(_ request: SessionsSignOutRequest, _ call: Call) async throws -> SessionsSignOutResponse {
        if try await call.project.secondFactorEnrollments.end(request.idToken, settings: call.settings) {
            return SessionsSignOutResponse()
        }
        guard let (uid, sessionID) = try session(request, call) else { return SessionsSignOutResponse() }
        do {
            _ = try await call.userSession(uid).end(session: sessionID, .signedOut, origin: call.origin)
        } catch let failure as Failure where failure.is(.sessionNotFound) {
            // The session was removed meanwhile, which is as good as signed out.
        }
        return SessionsSignOutResponse()
    }

    /// The user and the session of the token, whether or not the session lives; nil if nothing is left of it. A token
    /// that expired or was revoked signs out all the same: nobody gains anything by that.
    private static func session(_ request: SessionsSignOutRequest, _ call: Call) throws -> (Text, [UInt8])? {
        guard request.idToken.isEmpty else {
            let token = try call.project.tokenCheck.verifyExpired(request.idToken)
            guard token.tenantID == call.tenantID else {
                throw Failure.tenantMismatch(tokenOf: token.tenantID, request: call.tenantID)
            }
            return (token.uid, token.sessionID)
        }
        guard !request.refreshToken.isEmpty else {
            throw Failure.invalid(.missingToken, field: "refresh_token", "or id_token is required")
        }
        guard let token = call.project.refreshTokens.decode(request.refreshToken) else {
            throw Failure.invalidRefreshToken
        }
        guard let session = try call.project.store.read({ try $0.get(Tables.sessions, SessionKey(token.sessionID)) })
        else { return nil }
        guard session.tenantID == call.tenantID else {
            throw Failure.tenantMismatch(tokenOf: session.tenantID, request: call.tenantID)
        }
        return (session.uid, token.sessionID)
    }
}
