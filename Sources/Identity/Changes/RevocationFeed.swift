public import Base
public import Messages
public import Store

/// The revocations one watcher is told of, and the cursors by which it comes back.
///
/// A cursor reads `<feed>.<sequence>`: a feed is a store and a tenant, so that neither a restored backup nor another
/// tenant's watcher goes on in the wrong place.
public struct RevocationFeed: Sendable {
    /// Nil: all tenants.
    public let tenantID: Text?
    private let prefix: String
    private let retention: Duration

    public init(tenantID: Text?, feedID: Text, retention: Duration) {
        self.tenantID = tenantID
        self.prefix = "\(feedID).\(tenantID.map { "=\($0)" } ?? "*")."
        self.retention = retention
    }

    public var topic: ChangeTopic { tenantID.map { .revocations($0) } ?? .allRevocations }

    public func cursor(_ sequence: Int64) -> Text { Text("\(prefix)\(sequence)") }

    /// Where a stream goes on.
    public enum Resumption: Equatable, Sendable {
        case behind(Int64)
        case snapshot(SnapshotReason)
    }

    public func resume(_ cursor: Text, in transaction: borrowing ReadTransaction) throws -> Resumption {
        if cursor.isEmpty { return .snapshot(.noCursor) }
        let text = cursor.string
        guard text.hasPrefix(prefix), let sequence = Int64(text.dropFirst(prefix.count)), sequence >= 0,
            sequence <= (try transaction.lastRevocationSequence())
        else { return .snapshot(.cursorUnknown) }
        guard sequence >= (try transaction.firstRevocationSequence()) - 1 else { return .snapshot(.cursorTooOld) }
        return .behind(sequence)
    }

    public func revocations(
        in transaction: borrowing ReadTransaction, after sequence: Int64, limit: Int
    ) throws -> [SequencedRevocation] {
        guard let tenantID else { return try transaction.revocations(after: sequence, limit: limit) }
        return try transaction.revocations(of: tenantID, after: sequence, limit: limit)
    }

    /// All that matters to tokens that have not expired at `now`.
    public func snapshot(through last: Int64, now: Timestamp) -> RevocationSnapshot {
        RevocationSnapshot(feed: self, last: last, since: now - retention)
    }
}

/// A snapshot, page by page: first the tenants that are disabled, however long, then what was revoked lately, in order.
/// A user's revocation that a later one of the same user covers is left out.
public struct RevocationSnapshot: Sendable {
    private let feed: RevocationFeed
    private let last: Int64
    private let since: Timestamp
    private var lastTenant: [UInt8]?
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
        return hasTenants ? disabled + (try nextRevocations(in: transaction, limit: limit)) : disabled
    }

    private mutating func nextRevocations(
        in transaction: borrowing ReadTransaction, limit: Int
    ) throws -> [Revocation] {
        let start = try sequence ?? transaction.revocationSequence(before: since)
        let page = try feed.revocations(in: transaction, after: start, limit: limit)
        let wanted = page.filter { $0.sequence <= last }
        sequence = wanted.last?.sequence ?? start
        isDone = page.count < limit || wanted.count < page.count
        return try wanted.filter { try !Self.isCovered($0.revocation, in: transaction) }.map(\.revocation)
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
        var end: [UInt8]?
        try transaction.scan(Tables.tenants, from: lastTenant.map { .after($0) } ?? .first, limit: limit) {
            key, value in
            count += 1
            end = [UInt8](key)
            if let revocation = Self.disabling(try StoredTenant(decoding: value)) { disabled.append(revocation) }
            return true
        }
        lastTenant = end ?? lastTenant
        hasTenants = count < limit
        return disabled
    }

    private static func disabling(_ record: StoredTenant) -> Revocation? {
        guard let tenant = record.tenant, !record.deleted, tenant.disableAuth else { return nil }
        return Revocation(kind: .tenantDisabled, tenantID: tenant.tenantID, timeMicros: tenant.updatedAtMicros)
    }

    private static func isCovered(
        _ revocation: Revocation, in transaction: borrowing ReadTransaction
    ) throws -> Bool {
        guard revocation.kind == .user else { return false }
        // A new account of the same uid has nothing in the log for the tokens of the one before it.
        guard let user = try transaction.user(UserKey(revocation.tenantID, revocation.uid)),
            user.createdAtMicros < revocation.timeMicros
        else { return false }
        return user.tokensValidAfterMicros > revocation.validAfterMicros
    }
}
