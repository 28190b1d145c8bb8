import Base
import Store

extension PrometheusPage {
    /// Appends the metrics of the journal; nothing for a server that is in no cluster.
    mutating func journal(_ store: Store) {
        guard let status = store.journalStatus else { return }
        let counters = store.journalCounters
        single(
            "postern_journal_connected", "gauge", "1 while the engine of the cluster's journal takes entries.",
            status.isConnected ? 1 : 0)
        single("postern_journal_position", "gauge", "The newest entry that this node holds.", Double(status.position))
        single(
            "postern_journal_behind_entries", "gauge", "Entries that this node knows of and does not hold yet.",
            Double(status.behindCount))
        if let seen = status.endSeenAt {
            single(
                "postern_journal_end_seen_seconds", "gauge",
                "How long ago this node held all that any node had acknowledged.",
                Double(Instant.nowWithSleep.nanoseconds(since: seen)) / 1e9)
        }
        single(
            "postern_journal_appended_total", "counter", "Entries that this node wrote.",
            Double(counters.appended.value))
        single(
            "postern_journal_applied_total", "counter", "Entries of other nodes that this node took over.",
            Double(counters.applied.value))
        single(
            "postern_journal_outrun_total", "counter",
            "Entries that came after another node's, whose writes were decided again.", Double(counters.outrun.value))
        single(
            "postern_journal_turns_total", "counter",
            "Turns that this node was given, because other nodes' entries always came first.",
            Double(counters.turns.value))
        single(
            "postern_journal_connections_lost_total", "counter", "Connections to the engine that were lost.",
            Double(counters.connectionsLost.value))
        family("postern_journal_append_seconds", "histogram", "How long the engine took for an entry.")
        histogram("postern_journal_append_seconds", "", counters.appendDurations.snapshot)
    }
}
