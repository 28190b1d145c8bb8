import Base
import Store

/// One look at all tenants with waiting messages, in steps of a few tenants.
///
/// A mail server that many tenants use may be down for hours. All these tenants have messages then that are due later,
/// and each of them is looked at in a round.
struct DueRound: Sendable {
    /// The round begins after this tenant, and ends with it. Nil: it begins with the first and ends with the last.
    private let end: Text?
    private var last: Text?
    /// Whether the round has gone on from the last of all tenants to the first.
    private var hasTurned = false
    private(set) var isOver = false

    init(after tenant: Text?) { (end, last) = (tenant, tenant) }

    /// Up to `limit` messages to be delivered by now, of each tenant the most overdue ones. Looks at `tenantsMax`
    /// tenants at most.
    ///
    /// `room`: how many more deliveries a tenant may have beside the messages that were found so far; asked once for
    /// each tenant. `isTaken`: whether a message is being delivered already. Both may read in the transaction.
    mutating func next(
        limit: Int, tenantsMax: Int, now: Timestamp, in transaction: borrowing ReadTransaction,
        room: (Text, [OutboxDueKey]) -> DeliveryRoom, isTaken: (OutboxDueKey) -> Bool
    ) throws -> [OutboxDueKey] {
        var (due, tenantCount): ([OutboxDueKey], Int) = ([], 0)
        while !isOver, due.count < limit, tenantCount < tenantsMax {
            guard let tenant = try transaction.tenantWithMail(after: last, upTo: hasTurned ? end : nil) else {
                if end == nil || hasTurned { isOver = true } else { (last, hasTurned) = (nil, true) }
                continue
            }
            tenantCount += 1
            due += try transaction.dueMessages(
                of: tenant, now: now, limit: limit - due.count, room: room(tenant, due), isTaken: isTaken)
            last = tenant
        }
        return due
    }
}
