import Base
import Identity
import Messages
import Store

extension ServiceContext {
    /// The counters that Project.Stats answers; /metrics has them with more detail.
    func statistics() throws -> [StatsValue] {
        let store = try project.store.statistics()
        let used = store.space.map { [(Text("store_used_bytes"), Double($0.usedByteCount))] } ?? []
        let values: [(Text, Double)] =
            [("store_map_bytes", Double(store.mapByteCount))] + used + [
                ("store_writes", Double(store.writes)),
                ("store_commits", Double(store.commits)),
                ("store_write_errors", Double(store.writeErrors)),
                ("store_queued_writes", Double(store.queuedWrites)),
                ("store_readers", Double(store.readersUsed)),
            ]
        return values.map { StatsValue(name: $0.0, value: $0.1) }
    }
}
