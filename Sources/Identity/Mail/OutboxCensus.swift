import Base
import Messages
import Store

/// The counts of the messages in all tenants' outboxes, decoys among them.
public struct OutboxCensus: Sendable, Equatable {
    /// Messages to be delivered: now, or again later.
    public var pendingCount = 0
    /// Messages that were given up.
    public var deadCount = 0
    /// How long the most overdue message has been due. Zero when none is. The messages of suspended tenants are left
    /// out.
    public var overdue = Duration.zero
    /// False when there are more messages than are counted, or when the first count of the dead ones is not at its end.
    public var isComplete = true

    public init() {}
}

/// The progress of counting the dead messages. No index holds them, and to open a row costs the check of its MAC. So
/// each census opens a few rows, and goes on from where the census before it ended.
public struct OutboxPass: Sendable {
    private struct Counts {
        var dead = 0
        var all = 0
        var isComplete = false
    }

    private var last: TenantTextKey?
    private var counts = Counts()
    /// The counts of the pass before this one.
    private var finished: Counts?

    public init() {}

    fileprivate var deadCount: Int { (finished ?? counts).dead }
    fileprivate var isComplete: Bool { (finished ?? counts).isComplete }

    /// Opens the next `Limits.outboxCountedBytesMax` of messages. A pass ends with the table, or after
    /// `Limits.outboxCountedMax` messages.
    fileprivate mutating func goOn(in transaction: borrowing ReadTransaction, limits: Limits) throws {
        var (last, counts, byteCount, isAtEnd) = (last, counts, 0, true)
        try transaction.scanKeys(of: Tables.outbox, from: last.map { .after($0) } ?? .first) { key in
            guard byteCount < limits.outboxCountedBytesMax, counts.all < limits.outboxCountedMax else {
                isAtEnd = false
                return false
            }
            last = key
            counts.all += 1
            do {
                _ = try transaction.withValue(Tables.outbox, key) { record in
                    byteCount += record.count
                    if Self.isDead(record) { counts.dead += 1 }
                }
            } catch StoreError.corrupt {
                // A damaged message is not dead. It does not end the pass.
            }
            return true
        }
        if isAtEnd || counts.all >= limits.outboxCountedMax {
            counts.isComplete = isAtEnd
            (self.last, self.counts, finished) = (nil, Counts(), counts)
        } else {
            (self.last, self.counts) = (last, counts)
        }
    }

    /// `record`: an encoded `StoredOutboxMessage`.
    private static func isDead(_ record: UnsafeRawBufferPointer) -> Bool {
        guard let message = firstField(StoredOutboxMessage.FieldNumber.message, in: record) else { return false }
        // Proof: the numbers of the enumeration are not negative.
        return firstVarint(OutboxMessage.FieldNumber.state, in: message) == UInt64(OutboxState.dead.rawValue)
    }
}

extension Outbox {
    /// Counts the messages that wait, and goes on with counting the dead ones.
    public func census(_ pass: inout OutboxPass) throws -> OutboxCensus {
        let (now, limits) = (resources.clock.now(), resources.limits)
        var (census, reached) = (OutboxCensus(), pass)
        try resources.store.read { transaction in
            try reached.goOn(in: transaction, limits: limits)
            // A message that waits has one row there, which a delivery or a change may leave behind for a moment.
            census.pendingCount = try transaction.count(Tables.outboxDue)
            let first = try transaction.firstDue(tenantsMax: limits.outboxTenantsMax)
            if let time = first.time { census.overdue = max(.zero, now - time) }
            census.deadCount = reached.deadCount
            census.isComplete = reached.isComplete && first.isOfAll
        }
        pass = reached
        return census
    }
}

extension ReadTransaction {
    /// When the first of all messages is due, those of suspended tenants left out; looks at the first mail and the
    /// first SMS of `tenantsMax` tenants.
    fileprivate func firstDue(tenantsMax: Int) throws -> (time: Timestamp?, isOfAll: Bool) {
        var (first, last, tenantCount): (Timestamp?, Text?, Int) = (nil, nil, 0)
        while true {
            var found: OutboxDueKey?
            try scanKeys(of: Tables.outboxDue, from: last.map { .behind(TenantPrefix($0)) } ?? .first) { key in
                found = key
                return false
            }
            guard let key = found else { return (first, true) }
            guard tenantCount < tenantsMax else { return (first, false) }
            tenantCount += 1
            last = key.tenant
            // These messages wait for a project-admin, and not for their delivery.
            if (try? isSuspended(key.tenant)) == true { continue }
            first = min(first ?? key.time, key.time)
            guard !key.isSMS else { continue }
            try scanKeys(
                of: Tables.outboxDue, prefix: TenantPrefix(key.tenant),
                from: .at(OutboxDueKey.beforeSMS(of: key.tenant))
            ) { sms in
                first = min(first ?? sms.time, sms.time)
                return false
            }
        }
    }
}
