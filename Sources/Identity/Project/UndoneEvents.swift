public import Base
import Messages
public import Store

/// What a restore undoes: the events of a store that came after those of a backup.
public struct UndoneEvents: Sendable {
    /// The number of the store's newest event.
    public let newest: UInt64
    /// How many there are of each kind, the most frequent first.
    public private(set) var counts: [(kind: Text, count: Int)] = []

    /// Those of the store whose number is above `number`.
    public init(in transaction: borrowing ReadTransaction, behind number: UInt64) throws {
        newest = try transaction.newestEventNumber
        var byKind: [EventKind: Int] = [:]
        try transaction.scanEvents(behind: number) { _, event in
            let record = try EventRecord(decoding: event.payload, limits: MessageLimits())
            byKind[record.kind, default: 0] += 1
        }
        counts = byKind.sorted { ($0.value, $1.key.rawValue) > ($1.value, $0.key.rawValue) }
            .map { (kind: Text("\($0.key)"), count: $0.value) }
    }
}

extension Backups {
    /// Accepts a store that an operator has just restored from a backup. The event says so, and the store has a new
    /// witness. Every refresh token of before is void where the store is opened next, because sessions that had ended
    /// are open again in it.
    func noteRestored(_ header: BackupHeader) async throws {
        let (now, random) = (resources.clock.now(), resources.random)
        try await resources.store.acceptRollback { transaction in
            try transaction.beginEpoch(random)
            try transaction.appendEvent(
                .backupRestored, tenantID: .empty, origin: .server,
                detail: Text(
                    "by an operator, from the backup of \(header.createdAtMicros), up to event \(header.newestEvent)"),
                now: now)
        }
    }
}
