import Base
import Messages
import Store

// In a cluster each message is delivered by the node that claimed it. A claim puts the next attempt off: when the node
// dies, the message is due again by itself, and another node takes it over. Outside of a cluster nothing is claimed.

/// The claims of other nodes on messages that are due here, and since when this node has seen them.
///
/// A claim is over when this node has seen it unchanged for `JournalLimits.mailClaim` by its own steady clock. That the
/// message is due says nothing about that: the time of the next attempt was written by another node's clock. All times
/// here are the steady clock's.
struct ClaimWatch {
    private struct Seen {
        let claimant: [UInt8]
        let since: Timestamp
    }

    /// A claim that is renewed has another place in the queue.
    private var seen: [OutboxDueKey: Seen] = [:]
    /// Stands for the claimant of a message that this node cannot read: another node may be able to.
    static let unreadable: [UInt8] = []

    /// Whether a claim is over. A claim that was not seen before is watched from now on.
    mutating func isOver(
        _ key: OutboxDueKey, of claimant: [UInt8], after duration: Duration, now: Timestamp
    ) -> Bool {
        if let known = seen[key], known.claimant == claimant { return now - known.since >= duration }
        seen[key] = Seen(claimant: claimant, since: now)
        return false
    }

    /// Notes that this node cannot read a message. Returns whether that is new.
    mutating func noteUnreadable(_ key: OutboxDueKey, now: Timestamp) -> Bool {
        guard claimant(of: key) != Self.unreadable else { return false }
        seen[key] = Seen(claimant: Self.unreadable, since: now)
        return true
    }

    /// Whether a message that this node cannot read is left to other nodes until it has been so for `duration`.
    func isLeft(_ key: OutboxDueKey, for duration: Duration, now: Timestamp) -> Bool {
        guard let known = seen[key], known.claimant == Self.unreadable else { return false }
        return now - known.since < duration
    }

    /// The node whose claim is watched; nil if there is no such claim.
    func claimant(of key: OutboxDueKey) -> [UInt8]? { seen[key]?.claimant }

    /// Forgets the claims whose places in the queue are gone.
    mutating func forget(where isGone: (OutboxDueKey) throws -> Bool) rethrows {
        seen = try seen.filter { try !isGone($0.key) }
    }
}

/// A message that is due.
struct DueMessage: Sendable {
    let key: OutboxDueKey
    /// The node whose claim on the message is over; nil if the message may not be taken over. `ClaimWatch.unreadable`
    /// if no node was able to read the message.
    let abandonedBy: [UInt8]?
}

/// The outcome of the wish to claim a message.
enum ClaimOutcome: Sendable {
    case claimed(MailClaim)
    /// Another node has the message, or had it and its claim is not known to be over; or there is nothing to deliver.
    case refused
    /// This node cannot read the message.
    case unreadable
}

/// A message that this node may deliver now.
struct MailClaim: Sendable {
    /// Where the message stands in the queue from now on.
    let key: OutboxDueKey
    /// Another node had claimed the message and has not written the outcome: the message may be delivered twice.
    let isTakenOver: Bool
}

extension JournalLimits {
    /// A claim may be used for this long after it was asked for: an attempt takes a minute at most (`MailDelivery`),
    /// and has to end before another node takes the message over.
    var mailClaimUse: Duration { mailClaim / 4 }

    /// How long a node leaves a message that it cannot read to the other nodes, before it takes the message out of the
    /// queue of all nodes.
    var unreadableMailLeft: Duration { mailClaim * 5 }
}

extension ReadTransaction {
    /// The node that claimed the message of a row. Nil if nobody did, or if the row does not lead to the message. Does
    /// not decode the message: each look at the queue asks this about each message that is due.
    func claimant(due key: OutboxDueKey) throws -> [UInt8]? {
        let found = try withValue(Tables.outbox, TenantTextKey(key.tenant, key.messageID)) { record -> [UInt8]? in
            guard let message = firstField(StoredOutboxMessage.FieldNumber.message, in: record),
                let next = firstVarint(OutboxMessage.FieldNumber.nextAttemptAtMicros, in: message),
                next == UInt64(bitPattern: key.time.microseconds),
                let claimant = firstField(StoredOutboxMessage.FieldNumber.claimant, in: record), !claimant.isEmpty
            else { return nil }
            return [UInt8](claimant)
        }
        return found ?? nil
    }
}

extension WriteTransaction {
    /// Claims the messages that are still due, each on its own.
    func claim(_ due: [DueMessage], _ claimant: [UInt8], until: Timestamp) throws -> [ClaimOutcome] {
        try due.map { wanted throws -> ClaimOutcome in
            let key = wanted.key
            let found: StoredOutboxMessage?
            do {
                found = try reading.message(due: key)
            } catch StoreError.corrupt {
                // Perhaps only this node's copy is damaged. The claim of another node writes the record anew here.
                guard wanted.abandonedBy == ClaimWatch.unreadable else { return .unreadable }
                // The delivery logs that the message cannot be read, and takes it out of the queue.
                return .claimed(MailClaim(key: key, isTakenOver: false))
            }
            guard var stored = found, var message = stored.message else {
                // The row was left over. It would take a place among the tenant's deliveries for ever.
                try delete(Tables.outboxDue, key)
                return .refused
            }
            // The tenant may have been suspended since this node looked at the queue.
            guard reading.mayDeliver(of: key.tenant) else { return .refused }
            // A claim of this node itself shows that it sent nothing: messages that it is delivering are not in `due`.
            let isTakenOver = !stored.claimant.isEmpty && stored.claimant != claimant
            if isTakenOver, stored.claimant != wanted.abandonedBy { return .refused }
            try delete(Tables.outboxDue, key)
            // A message that crashes its server each time must run out of attempts, too.
            if isTakenOver { message.attempts &+= 1 }
            message.nextAttemptAtMicros = until.microseconds
            stored.message = message
            stored.claimant = claimant
            try putOutbox(stored, tenantID: key.tenant)
            // The row of an SMS that an older server queued has become one of the rows of SMS.
            let claimed = OutboxDueKey(until, key.tenant, key.messageID, isSMS: message.isSMS)
            return .claimed(MailClaim(key: claimed, isTakenOver: isTakenOver))
        }
    }
}

extension StoredOutboxMessage {
    /// Whether a node of the cluster is delivering the message, or was when it died.
    var isClaimed: Bool { !claimant.isEmpty && message?.state == .pending }
}
