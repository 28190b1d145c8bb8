public import Base
public import Messages
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
    /// Says that this store comes from a backup, and makes every refresh token of before void: sessions that had ended
    /// are open again in it. Takes effect where the store is opened next.
    public func noteRestored(_ header: BackupHeader) async throws {
        let (now, random) = (resources.clock.now(), resources.random)
        try await resources.store.write(for: .removal) { transaction in
            try transaction.beginEpoch(random)
            try transaction.appendEvent(
                .backupRestored, tenantID: .empty, origin: .server,
                detail: Text("of \(header.createdAtMicros), event \(header.newestEvent)"), now: now)
        }
    }
}
