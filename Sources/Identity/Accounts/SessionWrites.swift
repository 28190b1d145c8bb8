public import Base
public import Messages
import Rules
public import Store

/// How long a tenant's sessions live: unused, and in any case.
struct SessionLifetimes: Equatable {
    private(set) var idle = Duration.zero
    private(set) var absolute = Duration.zero

    /// `tenant`: an encoded `Tenant`.
    fileprivate mutating func read(_ tenant: UnsafeRawBufferPointer) throws {
        var fields = FieldReader(tenant)
        while let field = try fields.next() {
            switch (field.number, field.value) {
            case (Messages.Tenant.FieldNumber.sessionIdleSeconds, .varint(let value)):
                idle = .seconds(Int64(bitPattern: value))
            case (Messages.Tenant.FieldNumber.sessionAbsoluteSeconds, .varint(let value)):
                absolute = .seconds(Int64(bitPattern: value))
            default: break
            }
        }
    }
}

extension ReadTransaction {
    /// Nil for a tenant that does not exist or is deleted. The sweep asks for each session that is due, so this does
    /// not decode the tenant's settings.
    func sessionLifetimes(ofTenant tenantID: Text) throws -> SessionLifetimes? {
        let found = try withValue(Tables.tenants, TenantPrefix(tenantID)) { record -> SessionLifetimes? in
            var lifetimes = SessionLifetimes()
            var fields = FieldReader(record)
            while let field = try fields.next() {
                switch (field.number, field.value) {
                case (StoredTenant.FieldNumber.tenant, .bytes(let tenant)): try lifetimes.read(tenant)
                case (StoredTenant.FieldNumber.deleted, .varint(let value)) where value != 0: return nil
                default: break
                }
            }
            return lifetimes
        }
        return found ?? nil
    }

    /// The record of one of a user's sessions; nil if the user has no session of this id.
    func storedSession(_ id: [UInt8], of key: UserKey) throws -> StoredSession? {
        guard let session = try get(Tables.sessions, SessionKey(id)), session.tenantID == key.tenant,
            session.uid == key.uid
        else { return nil }
        return session
    }

    /// The ids of a user's sessions.
    func sessionIDs(of key: UserKey) throws -> [[UInt8]] {
        var ids: [[UInt8]] = []
        try scan(Tables.sessionByUser, prefix: UserSessionKey(key.tenant, key.uid)) { row in
            ids.append(try row.key.sessionID)
            return true
        }
        return ids
    }

    func sessionCount(of key: UserKey) throws -> Int {
        var count = 0
        try scan(Tables.sessionByUser, prefix: UserSessionKey(key.tenant, key.uid)) { _ in
            count += 1
            return true
        }
        return count
    }
}

extension WriteTransaction {
    /// Starts a session. A user who has `sessionsMax` records of sessions loses one: the record of the session that
    /// ended first, or the least recently used session where none has ended.
    func insertSession(
        _ session: StoredSession, id: [UInt8], sessionsMax: Int, settings: TenantSettings, now: Timestamp
    ) throws {
        let key = UserKey(session.tenantID, session.uid)
        if try reading.sessionCount(of: key) >= sessionsMax {
            try makeRoomForSession(of: key, now: now)
        }
        try put(Tables.sessions, SessionKey(id), session)
        try put(Tables.sessionByUser, UserSessionKey(key.tenant, key.uid, id), [])
        let lifetime = min(settings.sessionIdle, settings.sessionAbsolute)
        try scheduleExpiry(at: now + lifetime, Tables.sessions, SessionKey(id))
    }

    /// Ends all of a user's sessions, or all but one, and notes the reason in each. The records stay until they expire,
    /// so that a refresh can be told why it is refused. A change of the email that was asked for and not made yet
    /// becomes void.
    func endSessions(of key: UserKey, except kept: [UInt8]? = nil, _ end: SessionEnd, now: Timestamp) throws {
        for id in try reading.sessionIDs(of: key) where id != kept {
            guard let session = try get(Tables.sessions, SessionKey(id)), session.end == .unspecified else { continue }
            try put(Tables.sessions, SessionKey(id), session.ended(end, at: now))
        }
        try removeOobCodesAskedFromSessions(of: key)
    }

    /// Ends one session with its reason, and voids the codes that may have been asked for in it. False when the user
    /// has no such session, or it had ended before.
    func endSession(_ id: [UInt8], of key: UserKey, _ end: SessionEnd, origin: Origin, now: Timestamp) throws -> Bool {
        guard let session = try reading.storedSession(id, of: key), session.end == .unspecified else { return false }
        try put(Tables.sessions, SessionKey(id), session.ended(end, at: now))
        try revokeTokens(ofSession: id, of: key, now: now)
        try removeOobCodesAskedFromSessions(of: key)
        try appendEvent(
            .sessionRevoked, tenantID: key.tenant, uid: key.uid, origin: origin, detail: Hex.encode(id), now: now)
        return true
    }

    /// Deletes up to `limit` sessions of a deleted tenant, also damaged ones; returns whether there may be more. A
    /// session that no row of the tenant names, because that row is damaged, is deleted when it expires.
    func removeSessions(ofTenant tenantID: Text, limit: Int, onDamage: (String) -> Void) throws -> Bool {
        var ids: [[UInt8]] = []
        try reading.scanKeys(of: Tables.sessionByUser, prefix: TenantPrefix(tenantID)) { key in
            ids.append(key.sessionID)
            return ids.count < limit
        }
        for id in ids where !id.isEmpty { try delete(Tables.sessions, SessionKey(id)) }
        // Each of these rows named one of the sessions, or is damaged.
        let count = try deleteAll(Tables.sessionByUser, evenDamagedOf: tenantID, limit: limit, onDamage: onDamage)
        return count == limit
    }

    func removeSession(_ id: [UInt8], of key: UserKey) throws {
        try delete(Tables.sessions, SessionKey(id))
        try delete(Tables.sessionByUser, UserSessionKey(key.tenant, key.uid, id))
    }

    /// Removes one of a user's sessions. It reads each of them once, and there are never more than `sessionsMax`.
    private func makeRoomForSession(of key: UserKey, now: Timestamp) throws {
        let places = try reading.sessionIDs(of: key).map { id in
            (id: id, place: EvictionPlace(try get(Tables.sessions, SessionKey(id))))
        }
        guard let first = places.min(by: { $0.place < $1.place }) else { return }
        try removeSession(first.id, of: key)
        // The tokens of a session that has ended were revoked when it ended.
        if !first.place.hasEnded { try revokeTokens(ofSession: first.id, of: key, now: now) }
    }
}

/// The place of a session in the order in which sessions make room for a new one: ended ones by the time of their end,
/// then live ones by their last use.
private struct EvictionPlace: Comparable {
    let hasEnded: Bool
    let timeMicros: Int64

    /// A session without a record has ended before all others.
    init(_ session: StoredSession?) {
        guard let session else {
            (hasEnded, timeMicros) = (true, 0)
            return
        }
        hasEnded = session.end != .unspecified
        timeMicros = hasEnded ? session.endedAtMicros : max(session.lastUsedAtMicros, session.createdAtMicros)
    }

    static func < (one: Self, other: Self) -> Bool {
        one.hasEnded == other.hasEnded ? one.timeMicros < other.timeMicros : one.hasEnded
    }
}

extension StoredSession: ExpiringRecord {
    /// Use extends a session's life, so an expiry that comes up too early is scheduled again. A session whose tenant is
    /// gone is at its end: the deletion did not find the session if the row that names it was damaged.
    public static func expire(
        _ key: SessionKey, of table: Table<SessionKey, Self>, in transaction: borrowing WriteTransaction, now: Timestamp
    ) throws {
        guard let session = try transaction.get(table, key) else { return }
        let user = UserKey(session.tenantID, session.uid)
        guard let lifetimes = try transaction.reading.sessionLifetimes(ofTenant: session.tenantID) else {
            return try transaction.removeSession(key.sessionID, of: user)
        }
        let createdAt = Timestamp(microseconds: session.createdAtMicros)
        let lastUse = max(createdAt, Timestamp(microseconds: session.lastUsedAtMicros))
        let end = min(lastUse + lifetimes.idle, createdAt + lifetimes.absolute)
        if end > now {
            try transaction.scheduleExpiry(at: end, table, key)
        } else {
            try transaction.removeSession(key.sessionID, of: user)
        }
    }
}
