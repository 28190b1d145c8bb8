public import Base
public import Messages
public import Rules
public import Store

extension UserSession {
    /// Ends one session. SESSION_NOT_FOUND for a session that is not this user's. Returns whether this call ended it:
    /// false when it had ended before, and with `validateOnly`.
    public func end(
        session id: [UInt8], _ end: SessionEnd, origin: Origin, validateOnly: Bool = false
    ) async throws -> Bool {
        let now = resources.clock.now()
        let key = key
        return try await write(for: .removal) { transaction in
            if !validateOnly, try transaction.endSession(id, of: key, end, origin: origin, now: now) { return true }
            guard try transaction.reading.storedSession(id, of: key) != nil else { throw Failure.sessionNotFound }
            return false
        }
    }

    /// Ends every session but one; returns how many it ended.
    public func endSessions(except kept: [UInt8], _ end: SessionEnd, origin: Origin) async throws -> Int {
        let now = resources.clock.now()
        let key = key
        return try await write(for: .removal) { transaction in
            var count = 0
            for id in try transaction.reading.sessionIDs(of: key) where id != kept {
                if try transaction.endSession(id, of: key, end, origin: origin, now: now) { count += 1 }
            }
            return count
        }
    }
}

extension ReadTransaction {
    /// The user's sessions that live at `now`, the most recently used first.
    public func liveSessions(
        of key: UserKey, settings: TenantSettings, current: [UInt8]? = nil, now: Timestamp
    ) throws -> [Session] {
        var sessions: [Session] = []
        for id in try sessionIDs(of: key) {
            guard let stored = try get(Tables.sessions, SessionKey(id)),
                stored.refusedCause(settings: settings, now: now) == nil
            else { continue }
            sessions.append(stored.shown(id: id, settings: settings, isCurrent: id == current))
        }
        return sessions.sorted { $0.lastUsedAtMicros > $1.lastUsedAtMicros }
    }
}

extension StoredSession {
    /// The session as its user sees it.
    public func shown(id: [UInt8], settings: TenantSettings, isCurrent: Bool) -> Session {
        let idleEnd = Timestamp(microseconds: max(lastUsedAtMicros, createdAtMicros)) + settings.sessionIdle
        let absoluteEnd = Timestamp(microseconds: createdAtMicros) + settings.sessionAbsolute
        return Session(
            sessionID: Hex.encode(id), deviceName: deviceName, endUserIP: endUserIP, createdAtMicros: createdAtMicros,
            lastUsedAtMicros: lastUsedAtMicros, authTimeMicros: authTimeMicros,
            expiresAtMicros: min(idleEnd, absoluteEnd).microseconds, signInProvider: signInProvider,
            current: isCurrent)
    }
}

extension Failure {
    public static let sessionNotFound = Failure(
        .sessionNotFound,
        "The user has no session with this id; list the sessions to see which there are.")
}
