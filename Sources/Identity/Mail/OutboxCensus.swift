import Base
import Messages
import Store

/// The counts of the messages in all tenants' outboxes.
public struct OutboxCensus: Sendable, Equatable {
    /// Messages to be delivered: now, or again later.
    public var pendingCount = 0
    /// Messages that were given up.
    public var deadCount = 0
    /// How long the most overdue message has been due. Zero when none is.
    public var overdue = Duration.zero
    /// False when there are more messages than are counted at a time.
    public var isComplete = true

    public init() {}

    fileprivate mutating func count(_ message: UnsafeRawBufferPointer, now: Timestamp) throws {
        var (state, due): (UInt64, Int64) = (0, 0)
        var fields = FieldReader(message)
        while let field = try fields.next() {
            switch (field.number, field.value) {
            case (OutboxMessage.FieldNumber.state, .varint(let value)): state = value
            case (OutboxMessage.FieldNumber.nextAttemptAtMicros, .varint(let value)): due = Int64(bitPattern: value)
            default: break
            }
        }
        switch Int32(exactly: state).flatMap(OutboxState.init) {
        case .pending:
            pendingCount += 1
            if due > 0 { overdue = max(overdue, now - Timestamp(microseconds: due)) }
        case .dead: deadCount += 1
        default: break
        }
    }
}

extension Outbox {
    /// Counts up to `Limits.outboxCountedMax` messages, decoys among them.
    public func census() throws -> OutboxCensus {
        let now = resources.clock.now()
        var census = OutboxCensus()
        var left = resources.limits.outboxCountedMax
        try resources.store.read { transaction in
            try transaction.scan(Tables.outbox) { row in
                guard left > 0 else {
                    census.isComplete = false
                    return false
                }
                left -= 1
                var fields = FieldReader(row.value)
                while let field = try fields.next() {
                    if field.number == StoredOutboxMessage.FieldNumber.message, case .bytes(let message) = field.value {
                        try census.count(message, now: now)
                    }
                }
                return true
            }
        }
        return census
    }
}
