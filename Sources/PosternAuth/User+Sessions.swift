public import Base
import Messages
import PosternClient

/// A session: one sign-in of a user on one device. Times are by the server's clock.
///
/// ```swift
/// for session in try await user.sessions() where !session.isCurrent {
///     print(session.deviceName ?? "unnamed device", session.signInProvider)
/// }
/// ```
public struct UserSession: Sendable, Equatable, Identifiable {
    /// The session's id, for `User.revokeSession`.
    public let id: String
    /// The device's own name: `Auth.Configuration.deviceName`. Nil: it has none.
    public let deviceName: String?
    /// The IP address of the sign-in. Nil unless a trusted application reported it.
    public let endUserIP: String?
    /// When the session began.
    public let creationDate: Timestamp
    /// When the session was last refreshed.
    public let lastUsedDate: Timestamp
    /// When the user last proved their identity in this session.
    public let authDate: Timestamp
    /// When the session ends if nobody uses it before.
    public let expirationDate: Timestamp
    /// The way the session was begun: "password", "anonymous", "google.com", ….
    public let signInProvider: String
    /// True for the session of the `User` object that was asked.
    public let isCurrent: Bool

    init(_ session: Session) {
        id = session.sessionID.string
        deviceName = session.deviceName.stringOrNil
        endUserIP = session.endUserIP.stringOrNil
        creationDate = Timestamp(microseconds: session.createdAtMicros)
        lastUsedDate = Timestamp(microseconds: session.lastUsedAtMicros)
        authDate = Timestamp(microseconds: session.authTimeMicros)
        expirationDate = Timestamp(microseconds: session.expiresAtMicros)
        signInProvider = session.signInProvider.string
        isCurrent = session.current
    }
}

extension User {
    /// Lists the user's live sessions, the last used one first. At most 100.
    public func sessions() async throws -> [UserSession] {
        try await inTurn { idToken throws(AuthError) in
            let request = SessionsListRequest(tenantID: backend.tenantID, idToken: idToken)
            return try await backend.call { try await backend.sessions.list(request) }.sessions.map { UserSession($0) }
        }
    }

    /// Ends a session, which signs the user out on that device at once. A session that is over already is no error.
    ///
    /// Ending this object's own session signs the user out here, as `Auth.signOut` does. Throws an error with the
    /// reason SESSION_NOT_FOUND for an id of no session of this user.
    public func revokeSession(_ id: String) async throws {
        let sessionID = try backend.text(id)
        try await inTurn { idToken throws(AuthError) in
            _ = try await revoke(.sessionID(sessionID), idToken)
            // Compared as bytes, because hexadecimal digits may be written in upper or lower case.
            let own = try IDTokenPayload(idToken).sessionID.flatMap { Hex.decode($0.utf8) }
            if let own, own == Hex.decode(id.utf8) { end(nil) }
        }
    }

    /// Ends every session of the user but this one. Returns how many sessions it ended.
    @discardableResult
    public func signOutOtherSessions() async throws -> Int {
        try await inTurn { idToken throws(AuthError) in try await revoke(.allOthers(true), idToken) }
    }

    private func revoke(_ target: SessionsRevokeRequest.Target, _ idToken: Text) async throws(AuthError) -> Int {
        let request = SessionsRevokeRequest(tenantID: backend.tenantID, idToken: idToken, target: target)
        return Int(try await backend.call { try await backend.sessions.revoke(request) }.revokedCount)
    }
}
