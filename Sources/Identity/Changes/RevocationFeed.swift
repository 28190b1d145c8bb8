public import Base
public import Messages
public import Store

/// The revocations that one watcher is told of, and the cursors with which it resumes.
///
/// A cursor reads `<feed>.<sequence>.<time>`. The feed names a store and a tenant, so that another tenant's watcher
/// does not go on in the wrong place. The time is that of the revocation with this sequence: a restored backup counts
/// on from an earlier sequence and reaches the cursor's sequence again, though at another time.
public struct RevocationFeed: Sendable {
    /// Nil: all tenants.
    public let tenantID: Text?
    private let prefix: Text
    /// Two numbers and the point between them.
    private static let placeByteCountMax = 41
    private let retention: Duration

    public init(tenantID: Text?, feedID: Text, retention: Duration) {
        self.tenantID = tenantID
        self.prefix = Text("\(feedID).\(tenantID.map { "=\($0)" } ?? "*").")
        self.retention = retention
    }

    public var topics: [ChangeTopic] {
        tenantID.map { [.revocations($0), .revocations(RevocationRows.everyTenant)] } ?? [.allRevocations]
    }

    public func cursor(_ place: RevocationPlace) -> Text { Text("\(prefix)\(place.sequence).\(place.timeMicros)") }

    /// The place where a stream continues.
    public enum Resumption: Equatable, Sendable {
        case behind(RevocationPlace)
        case snapshot(SnapshotReason)
    }

    public func resume(_ cursor: Text, in transaction: borrowing ReadTransaction) throws -> Resumption {
        if cursor.isEmpty { return .snapshot(.noCursor) }
        guard cursor.byteCount <= prefix.byteCount + Self.placeByteCountMax, cursor.bytes.starts(with: prefix.bytes),
            let place = RevocationPlace(cursor.bytes.dropFirst(prefix.byteCount)),
            place.sequence <= (try transaction.lastRevocationSequence())
        else { return .snapshot(.cursorUnknown) }
        guard place.sequence >= (try transaction.firstRevocationSequence()) - 1,
            let kept = try transaction.revocationPlace(place.sequence)
        else { return .snapshot(.cursorTooOld) }
        return kept == place ? .behind(place) : .snapshot(.cursorUnknown)
    }

    public func revocations(
        in transaction: borrowing ReadTransaction, after sequence: Int64, limit: Int
    ) throws -> [SequencedRevocation] {
        guard let tenantID else { return try transaction.revocations(after: sequence, limit: limit) }
        return try transaction.revocations(of: tenantID, after: sequence, limit: limit)
    }

    /// All revocations that matter to tokens which have not expired at `now`; `now` is the earliest time that it can
    /// be.
    public func snapshot(through last: Int64, now: Timestamp) -> RevocationSnapshot {
        RevocationSnapshot(feed: self, last: last, since: now - retention)
    }
}

/// A snapshot, page by page: first the tenants that are disabled and the signing keys that were revoked, however long
/// ago, then what was revoked lately, in order.
/// A user's revocation that another one on the same page covers is left out.
public struct RevocationSnapshot: Sendable {
    private let feed: RevocationFeed
    private let last: Int64
    private let since: Timestamp
    private var lastTenant: TenantPrefix?
    private var hasTenants = false
    private var sequence: Int64?
    public private(set) var isDone = false

    fileprivate init(feed: RevocationFeed, last: Int64, since: Timestamp) {
        self.feed = feed
        self.last = last
        self.since = since
    }

    /// The next page, of about `limit`; it may be empty and not the last.
    public mutating func next(in transaction: borrowing ReadTransaction, limit: Int) throws -> [Revocation] {
        guard !hasTenants else { return try nextRevocations(in: transaction, limit: limit) }
        let disabled = try nextTenants(in: transaction, limit: limit)
        guard hasTenants else { return disabled }
        let keys = try transaction.revokedSigningKeys()
        return disabled + keys + (try nextRevocations(in: transaction, limit: limit)).filter { $0.kind != .signingKey }
    }

    private mutating func nextRevocations(
        in transaction: borrowing ReadTransaction, limit: Int
    ) throws -> [Revocation] {
        let start = try sequence ?? transaction.revocationSequence(before: since)
        let page = try feed.revocations(in: transaction, after: start, limit: limit)
        let wanted = page.filter { $0.sequence <= last }
        sequence = wanted.last?.sequence ?? start
        isDone = page.count < limit || wanted.count < page.count
        return Self.withoutCovered(wanted.map(\.revocation))
    }

    private mutating func nextTenants(
        in transaction: borrowing ReadTransaction, limit: Int
    ) throws -> [Revocation] {
        var disabled: [Revocation] = []
        if let tenantID = feed.tenantID {
            let record = try transaction.get(Tables.tenants, TenantPrefix(tenantID))
            disabled = record.flatMap(Self.disabling).map { [$0] } ?? []
            hasTenants = true
            return disabled
        }
        var count = 0
        var end: TenantPrefix?
        try transaction.scan(Tables.tenants, from: lastTenant.map { .after($0) } ?? .first, limit: limit) { row in
            count += 1
            end = try row.key
            if let revocation = Self.disabling(try row.record) { disabled.append(revocation) }
            return true
        }
        lastTenant = end ?? lastTenant
        hasTenants = count < limit
        return disabled
    }

    private static func disabling(_ record: StoredTenant) -> Revocation? {
        guard let tenant = record.tenant, !record.deleted, tenant.isShut else { return nil }
        return Revocation(kind: .tenantDisabled, tenantID: tenant.tenantID, timeMicros: tenant.updatedAtMicros)
    }

    // Compares within the page alone: the present account may be another one of the same uid, whose creation is in no
    // log.
    private static func withoutCovered(_ page: [Revocation]) -> [Revocation] {
        var newest: [UserKey: Int64] = [:]
        for revocation in page where revocation.kind == .user {
            newest[revocation.user] = max(newest[revocation.user] ?? .min, revocation.validAfterMicros)
        }
        return page.filter { $0.kind != .user || $0.validAfterMicros == newest[$0.user] }
    }
}

extension Revocation {
    fileprivate var user: UserKey { UserKey(tenantID, uid) }
}
