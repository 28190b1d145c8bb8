public import Base
import Messages
public import Rules
public import Store

/// A page of the users that a query asks for, as they lie in the database.
///
/// Valid until the transaction that read it ends.
public struct UserPage {
    public var users: [UnsafeRawBufferPointer] = []
    /// How many rows were read.
    public var rowReadCount = 0
    /// The position after which the next page begins; nil on the last page.
    public var last: Text?
}

extension ReadTransaction {
    /// The users of a tenant that a query asks for, after `last`. UPGRADE_PENDING.
    public func users(
        _ query: UserQuery, tenantID: Text, after last: Text?, bounds: PageBounds
    ) throws -> UserPage {
        let bounds = PageBounds(bounds, bytesReadMax: query.bytesReadMax)
        switch query.index {
        case .uid:
            return try page(
                UserIndex(table: Tables.users, key: { UserKey(tenantID, $0) }, position: \.uid), query, tenantID,
                after: last, bounds: bounds, candidate: { .user($0.value) })
        case .email:
            let index = UserIndex(
                table: Tables.userByEmail, key: { TenantTextKey(tenantID, $0) }, position: \.text,
                prefix: TenantTextKey(tenantID, Text(unchecked: query.filter.emailPrefix)))
            return try page(index, query, tenantID, after: last, bounds: bounds) { row in
                let isWanted = try row.key.text.bytes.withUnsafeBytes { query.filter.matchesEmail($0) }
                return isWanted ? .uid(Text(unchecked: [UInt8](row.value))) : .nobody
            }
        case .phoneNumber:
            let index = UserIndex(
                table: Tables.userByPhone, key: { TenantTextKey(tenantID, $0) }, position: \.text,
                prefix: TenantTextKey(tenantID, Text(unchecked: query.filter.phoneNumberPrefix)))
            return try page(index, query, tenantID, after: last, bounds: bounds) { row in
                .uid(Text(unchecked: [UInt8](row.value)))
            }
        case .creation: return try usersByCreation(query, tenantID, after: last, bounds: bounds)
        case .identity(let identity):
            var page = UserPage(rowReadCount: 1)
            var finder = UserFinder(tenantID: tenantID)
            guard let user = try finder.user(of: identity, in: self)?.encoded, try query.filter.matches(user) else {
                return page
            }
            page.users = [user]
            return page
        }
    }

    private func usersByCreation(
        _ query: UserQuery, _ tenantID: Text, after last: Text?, bounds: PageBounds
    ) throws -> UserPage {
        guard try hasUserIndexes() else { throw Failure.upgradePending }
        let created = query.filter.created
        // The bounds of a range lie between two users.
        func place(_ micros: Int64) -> UserTimeKey { UserTimeKey(tenantID, Timestamp(microseconds: micros)) }
        var index = UserIndex(
            table: Tables.userByCreation, key: { UserTimeKey(tenantID, position: $0) }, position: \.position)
        index.start = .at(place(query.isDescending ? created.upperBound : created.lowerBound))
        return try page(index, query, tenantID, after: last, bounds: bounds) { row in
            let key = try row.key
            return created.contains(key.time.microseconds) ? .uid(key.uid) : .end
        }
    }

    private func page<Key: StoreKey, Record>(
        _ index: UserIndex<Key, Record>, _ query: UserQuery, _ tenantID: Text, after last: Text?, bounds: PageBounds,
        candidate: (Row<Key, Record>) throws -> UserCandidate
    ) throws -> UserPage {
        let start = last.map { ScanStart.after(index.key($0)) } ?? index.start
        func classify(_ row: Row<Key, Record>) throws -> PagedRow {
            switch try candidate(row) {
            case .end: return .end
            case .nobody: return .skipped
            case .user(let record):
                let user = Account.encodedUser(in: record)
                return try query.filter.matches(user) ? .item(user) : .skipped
            case .uid(let uid):
                guard let user = try encodedUser(UserKey(tenantID, uid)) else { return .skipped }
                return try query.filter.matches(user) ? .item(user) : .rejected(user)
            }
        }
        let found =
            if let prefix = index.prefix {
                try page(
                    of: index.table, prefix: prefix, from: start, reversed: query.isDescending, bounds: bounds, classify
                )
            } else {
                try page(
                    of: index.table, prefix: TenantPrefix(tenantID), from: start, reversed: query.isDescending,
                    bounds: bounds, classify)
            }
        return UserPage(users: found.items, rowReadCount: found.rowReadCount, last: found.last.map(index.position))
    }
}

/// The index that is scanned for a query. A page's position names one of its rows.
private struct UserIndex<Key: StoreKey, Record: Sendable> {
    let table: Table<Key, Record>
    let key: (Text) -> Key
    let position: (Key) -> Text
    /// Nil: all rows of the tenant.
    var prefix: Key?
    var start = ScanStart.first
}

/// The user that a row of an index leads to.
private enum UserCandidate {
    case user(UnsafeRawBufferPointer)
    case uid(Text)
    /// The row alone shows that its user is not asked for.
    case nobody
    /// No row from here on leads to a user that is asked for.
    case end
}

extension UserTimeKey {
    /// `time (µs)` and uid, with a space between.
    fileprivate var position: Text { Text(unchecked: [UInt8]("\(time.microseconds) ".utf8) + uid.bytes) }

    fileprivate init(_ tenant: Text, position: Text) {
        let parts = position.bytes.split(separator: UInt8(ascii: " "), maxSplits: 1, omittingEmptySubsequences: false)
        let micros = Int64(String(decoding: parts[0], as: UTF8.self)) ?? 0
        let uid = parts.count == 2 ? Text(unchecked: Array(parts[1])) : .empty
        self.init(tenant, Timestamp(microseconds: micros), uid)
    }
}

extension Failure {
    public static let upgradePending = Failure(
        .upgradePending,
        "The store was too full to be upgraded, so users are neither counted nor in order of creation; the operator "
            + "must make room and start the server again.")
}
