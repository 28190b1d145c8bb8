import Base
import Messages
import Store

// In a cluster each message is delivered by the node that claimed it. A claim puts the next attempt off to the claim's
// end: when the node dies, the message is due again by itself. Outside of a cluster nothing is claimed.

/// A message that this node may deliver now.
struct MailClaim: Sendable {
    /// Where the message stands in the queue from now on.
    let key: OutboxDueKey
    /// Another node had claimed the message and has not written the outcome: the message may be delivered twice.
    let isTakenOver: Bool
}

extension JournalLimits {
    /// A claim may be used for this long after it was asked for: an attempt takes a minute at most (`MailDelivery`),
    /// and has to end before the claim does.
    var mailClaimUse: Duration { mailClaim / 4 }
}

extension WriteTransaction {
    /// Claims the messages of `keys` that are still due, each on its own. Nil when another node has the message, or
    /// when the message is left to the node that had it, which may come back (`mayTakeOver` is false).
    func claim(
        _ keys: [OutboxDueKey], _ claimant: [UInt8], until: Timestamp, mayTakeOver: Bool
    ) throws -> [MailClaim?] {
        try keys.map { key throws in
            let found: StoredOutboxMessage?
            do {
                found = try reading.message(due: key)
            } catch StoreError.corrupt {
                // The delivery logs that the message cannot be read, and takes it out of the queue.
                return MailClaim(key: key, isTakenOver: false)
            }
            guard var stored = found, var message = stored.message else {
                // The row was left over. It would take a place among the tenant's deliveries for ever.
                try delete(Tables.outboxDue, key)
                return nil
            }
            // A claim of this node itself shows that it sent nothing: messages that it is delivering are not in `keys`.
            let isTakenOver = !stored.claimant.isEmpty && stored.claimant != claimant
            if isTakenOver, !mayTakeOver { return nil }
            try delete(Tables.outboxDue, key)
            // A message that crashes its server each time must run out of attempts, too.
            if isTakenOver { message.attempts &+= 1 }
            message.nextAttemptAtMicros = until.microseconds
            stored.message = message
            stored.claimant = claimant
            try putOutbox(stored, tenantID: key.tenant)
            return MailClaim(key: OutboxDueKey(until, key.tenant, key.messageID), isTakenOver: isTakenOver)
        }
    }
}

extension StoredOutboxMessage {
    /// Whether a node of the cluster is delivering the message.
    func isClaimed(at now: Timestamp) -> Bool {
        !claimant.isEmpty && now < Timestamp(microseconds: message?.nextAttemptAtMicros ?? 0)
    }
}
