import Base
import Store

extension PrometheusPage {
    /// Appends the space that the store takes and has, and what became of its writes.
    mutating func store(_ statistics: StoreStatistics) {
        if let space = statistics.space {
            single(
                "postern_store_used_bytes", "gauge", "Pages of the database that hold something.",
                Double(space.usedByteCount))
            single(
                "postern_store_room_bytes", "gauge",
                "What the database can still take: on the disk, and up to map_bytes.", Double(space.roomByteCount))
        }
        single(
            "postern_store_extent_bytes", "gauge",
            "Pages of the database up to the last used one, free ones among them.",
            Double(statistics.extentByteCount))
        single(
            "postern_store_file_bytes", "gauge", "The database file, with what is reserved ahead.",
            Double(statistics.fileByteCount))
        single(
            "postern_store_map_bytes", "gauge", "The greatest size of the database file.",
            Double(statistics.mapByteCount))
        single(
            "postern_store_commit_running_seconds", "gauge",
            "How long the present commit or sync has waited for the disk; 0 if there is none.",
            statistics.diskWait / .seconds(1))
        writes(statistics)
    }

    private mutating func writes(_ statistics: StoreStatistics) {
        single(
            "postern_store_queued_writes", "gauge", "Writes that wait for the store's writer.",
            Double(statistics.queuedWrites))
        single("postern_store_writes_total", "counter", "Writes committed.", Double(statistics.writes))
        single("postern_store_commits_total", "counter", "Commits, each with one sync.", Double(statistics.commits))
        single(
            "postern_store_write_errors_total", "counter", "Batches of writes that failed.",
            Double(statistics.writeErrors))
        single(
            "postern_store_full_refusals_total", "counter", "Writes refused because the store is full.",
            Double(statistics.refusals))
        single(
            "postern_store_degraded", "gauge", "1 while the store takes fewer writes than usual, or none.",
            statistics.isDegraded ? 1 : 0)
        single(
            "postern_store_witness_errors_total", "counter", "Writes and syncs of the store's witness that failed.",
            Double(statistics.witnessErrors))
        single(
            "postern_store_readers", "gauge", "Slots for readers of the database that were ever in use.",
            Double(statistics.readersUsed))
    }
}
