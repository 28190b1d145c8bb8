public import Base
import Messages
import Rules
import Store
import Synchronization

/// Deletes, in slices, anonymous users that were unused for as long as their tenant says. Each is removed like any
/// account.
///
/// Only users on the list `Tables.anonymousUsers` are looked at: those who signed up anonymously and have no other way
/// in. Whether a user is deleted is decided in the transaction that deletes it.
public final class AnonymousExpiry: Sendable {
    private struct State {
        /// The row after which the next sweep goes on; nil = from the beginning.
        var place: UserKey?
    }

    public let expiredCount = Counter()
    private let resources: Resources
    private let users: UserDirectory
    private let state = Mutex(State())
    /// Rows one sweep looks at, of all tenants: at a minute a sweep, a million in less than an hour.
    private static let rowsMax = 20_000
    private static let trustedAfter = Duration.hours(1)

    init(_ resources: Resources, users: UserDirectory) {
        self.resources = resources
        self.users = users
    }

    /// Deletes one slice. Does nothing until the wall clock has been right for an hour, because whole accounts are
    /// deleted.
    func sweep(now: Timestamp) async throws {
        guard resources.time.hasAgreed(for: Self.trustedAfter) else { return }
        let last = state.withLock { $0.place }
        let (found, next) = try candidates(after: last, now: now)
        state.withLock { $0.place = next }
        try await expire(found, now: now)
    }

    /// Deletes the users that are unused. A damaged record keeps its own user, and no other one.
    private func expire(_ keys: [UserKey], now: Timestamp) async throws {
        var rest = keys[...]
        var sliceMax = resources.limits.sliceItemsMax
        while let first = rest.first {
            let slice = rest.prefix(max(1, sliceMax))
            do {
                let isDeleted = try await users.changing(Array(slice)) {
                    try await resources.store.write(firstOf: slice) { transaction, key in
                        try transaction.expireAnonymousUser(key, now: now)
                    }
                }
                expiredCount.add(UInt64(clamping: isDeleted.count { $0 }))
                rest = rest.dropFirst(isDeleted.count)
            } catch StoreError.corrupt where slice.count > 1 {
                // From here on one by one.
                sliceMax = 1
            } catch StoreError.corrupt(let table) {
                resources.damagedRecords.passOver(first, table: table)
                rest = rest.dropFirst()
            }
        }
    }

    /// Rows whose user seems to be unused or no longer anonymous, and the row after which to look next.
    private func candidates(after last: UserKey?, now: Timestamp) throws -> (keys: [UserKey], next: UserKey?) {
        try resources.store.read { transaction in
            var (found, next, rowCount): ([UserKey], UserKey?, Int) = ([], nil, 0)
            var expiries: [Text: Duration] = [:]
            try transaction.scanKeys(of: Tables.anonymousUsers, from: last.map { .after($0) } ?? .first) { key in
                guard rowCount < Self.rowsMax, found.count < resources.limits.anonymousUsersExpiredPerSweep else {
                    return false
                }
                rowCount += 1
                next = key
                let duration = try expiries[key.tenant] ?? expiry(ofTenant: key.tenant, in: transaction)
                expiries[key.tenant] = duration
                if try seemsExpired(key, expiry: duration, now: now, in: transaction) { found.append(key) }
                return true
            }
            let isAtEnd = rowCount < Self.rowsMax && found.count < resources.limits.anonymousUsersExpiredPerSweep
            return (found, isAtEnd ? nil : next)
        }
    }

    /// Zero for a tenant whose record is damaged: its users stay.
    private func expiry(ofTenant tenantID: Text, in transaction: borrowing ReadTransaction) throws -> Duration {
        do {
            return try transaction.anonymousUserExpiry(tenantID: tenantID)
        } catch StoreError.corrupt(let table) {
            resources.damagedRecords.passOver(tenantID, table: table)
            return .zero
        }
    }

    /// Whether the write that deletes users has to look at this one. A user with a damaged record stays.
    private func seemsExpired(
        _ key: UserKey, expiry: Duration, now: Timestamp, in transaction: borrowing ReadTransaction
    ) throws -> Bool {
        guard expiry > .zero else { return false }
        do {
            // The scan gave a key that may be damaged.
            guard try transaction.exists(Tables.anonymousUsers, key) else { return false }
            return try transaction.anonymousUserState(key, expiry: expiry, now: now) != .used
        } catch StoreError.corrupt(let table) {
            resources.damagedRecords.passOver(key, table: table)
            return false
        }
    }
}

private enum AnonymousUserState {
    case used
    case unused
    /// Gone, or no longer anonymous.
    case notAnonymous
}

extension ReadTransaction {
    fileprivate func anonymousUserExpiry(tenantID: Text) throws -> Duration {
        guard let record = try get(Tables.tenants, TenantPrefix(tenantID)), !record.deleted else { return .zero }
        return .seconds(record.tenant?.anonymousUserExpirySeconds ?? 0)
    }

    fileprivate func anonymousUserState(_ key: UserKey, expiry: Duration, now: Timestamp) throws -> AnonymousUserState {
        guard let account = try account(key), account.hasNoWayIn else { return .notAnonymous }
        var lastUse = max(account.user.createdAtMicros, account.user.lastSignInAtMicros)
        lastUse = max(lastUse, try endOfSessionCookies(ofAnonymous: key).microseconds)
        for id in try sessionIDs(of: key) {
            guard let session = try get(Tables.sessions, SessionKey(id)) else { continue }
            lastUse = max(lastUse, session.createdAtMicros, session.lastUsedAtMicros)
        }
        return Timestamp(microseconds: lastUse) + expiry < now ? .unused : .used
    }

    /// When the last session cookie of the user ends, or zero: the record of the list has this time, in eight bytes,
    /// for a user who has cookies. Older servers made cookies without it, and do not read it.
    fileprivate func endOfSessionCookies(ofAnonymous key: UserKey) throws -> Timestamp {
        guard let bytes = try get(Tables.anonymousUsers, key), bytes.count == 8 else { return .zero }
        return Timestamp(microseconds: Int64(clamping: bytes.bigEndianNumber))
    }
}

extension UserSession {
    /// Notes when a session cookie of the user ends, if the tenant deletes unused anonymous users and this is one. The
    /// user counts as seen until then: a write for each use would be too dear, and other programs check cookies without
    /// asking the server.
    public func noteSessionCookie(until end: Timestamp) async throws {
        let key = self.key
        let mayExpire = try resources.store.read { transaction in
            guard try transaction.exists(Tables.anonymousUsers, key) else { return false }
            return try transaction.anonymousUserExpiry(tenantID: key.tenant) > .zero
        }
        guard mayExpire else { return }
        try await write(for: .session) { transaction in
            guard try transaction.exists(Tables.anonymousUsers, key) else { return }
            let last = max(end, try transaction.reading.endOfSessionCookies(ofAnonymous: key))
            try transaction.put(
                Tables.anonymousUsers, key, withUnsafeBytes(of: last.microseconds.bigEndian) { [UInt8]($0) })
        }
    }
}

extension WriteTransaction {
    /// Deletes a user that is unused, or takes a user off the list that is not anonymous; returns whether it deleted
    /// one.
    fileprivate func expireAnonymousUser(_ key: UserKey, now: Timestamp) throws -> Bool {
        let expiry = try reading.anonymousUserExpiry(tenantID: key.tenant)
        guard expiry > .zero else { return false }
        switch try reading.anonymousUserState(key, expiry: expiry, now: now) {
        case .used: return false
        case .notAnonymous:
            try delete(Tables.anonymousUsers, key)
            return false
        case .unused:
            guard let account = try reading.account(key) else { return false }
            try remove(account, origin: .server, detail: "unused anonymous user", now: now)
            return true
        }
    }
}
