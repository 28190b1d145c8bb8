public import Base
import Messages
public import Store

/// The events that a restore undoes: those of the present store that the backup does not hold.
public struct UndoneEvents: Sendable {
    /// How many there are of each kind, the most frequent first.
    public private(set) var counts: [(kind: Text, count: Int)] = []

    /// The events of the store whose number is above `number`: for a backup whose store is not read. Right only if the
    /// store went on from the backup.
    public init(in transaction: borrowing ReadTransaction, behind number: UInt64) throws {
        var byKind: [EventKind: Int] = [:]
        try transaction.scanEvents(behind: number) { _, event in try Self.count(event, &byKind) }
        counts = Self.sorted(byKind)
    }

    /// The events of a store that another store does not have. Both were the same up to some event of each tenant.
    public init(in old: borrowing ReadTransaction, missingFrom new: borrowing ReadTransaction) throws {
        var byKind: [EventKind: Int] = [:]
        var last: Text?
        while let tenant = try old.tenantWithEvents(after: last) {
            last = tenant
            // The other store had the events that it has deleted by age.
            let cut = try new.eventCheckpoint(tenant: tenant)?.head.sequence ?? 0
            try old.scanEvents(tenant: tenant, reversed: true) { event in
                guard event.sequence > cut else { return false }
                // Each event holds the hash of the event before it: if one event is the same, all before it are.
                if try new.event(tenant: tenant, sequence: event.sequence)?.event == event { return false }
                try Self.count(event, &byKind)
                return true
            }
        }
        counts = Self.sorted(byKind)
    }

    private static func count(_ event: StoredEvent, _ byKind: inout [EventKind: Int]) throws {
        let record = try EventRecord(stored: event.payload)
        byKind[record.kind, default: 0] += 1
    }

    private static func sorted(_ byKind: [EventKind: Int]) -> [(kind: Text, count: Int)] {
        byKind.sorted { ($0.value, $1.key.rawValue) > ($1.value, $0.key.rawValue) }
            .map { (kind: Text("\($0.key)"), count: $0.value) }
    }
}
