public import Base
import Messages
import PosternClient

/// One sign-in of a user, on one device. Times are the server's.
public struct UserSession: Sendable, Equatable, Identifiable {
    public let id: String
    /// What the device called itself: `Auth.Configuration.deviceName`.
    public let deviceName: String?
    /// Where the sign-in came from, where a trusted application told it.
    public let endUserIP: String?
    public let creationDate: Timestamp
    /// The newest refresh.
    public let lastUsedDate: Timestamp
    /// When the user last proved who they are.
    public let authDate: Timestamp
    /// When it ends if it is not used until then.
    public let expirationDate: Timestamp
    /// "password", "anonymous", "google.com", …
    public let signInProvider: String
    /// The one of the user object that was asked.
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
    /// Where the user is signed in: the live sessions, the one used last first; at most 100.
    public func sessions() async throws -> [UserSession] {
        try await inTurn { idToken throws(AuthError) in
            let request = SessionsListRequest(tenantID: backend.tenantID, idToken: idToken)
            return try await backend.call { try await backend.sessions.list(request) }.sessions.map { UserSession($0) }
        }
    }

    /// Signs the user out on another device, at once; one that is over already is no error. Of this user's own session
    /// it is the end, as `signOut` is, for whoever holds the object, too. Reason SESSION_NOT_FOUND for an id that is
    /// none of the user's.
    public func revokeSession(_ id: String) async throws {
        let sessionID = try backend.text(id)
        try await inTurn { idToken throws(AuthError) in
            _ = try await revoke(.sessionID(sessionID), idToken)
            // Hexadecimal digits, which are written either way.
            let own = try IDTokenPayload(idToken).sessionID.flatMap { Hex.decode($0.utf8) }
            if let own, own == Hex.decode(id.utf8) { end(nil) }
        }
    }

    /// Signs the user out everywhere but here; the number of sessions that this ended.
    @discardableResult
    public func signOutOtherSessions() async throws -> Int {
        try await inTurn { idToken throws(AuthError) in try await revoke(.allOthers(true), idToken) }
    }

    private func revoke(_ target: SessionsRevokeRequest.Target, _ idToken: Text) async throws(AuthError) -> Int {
        let request = SessionsRevokeRequest(tenantID: backend.tenantID, idToken: idToken, target: target)
        return Int(try await backend.call { try await backend.sessions.revoke(request) }.revokedCount)
    }
}
