import Base
import Journal
import Store

/// The growth of the journal since the newest snapshot, counted as it grows.
struct JournalGrowth {
    private var snapshot: [UInt8] = []
    private var position: UInt64 = 0
    private var entryCount = 0
    private var byteCount = 0

    mutating func isSnapshotDue(
        _ tables: SnapshotTables, _ limits: JournalLimits
    ) throws(JournalEngineError) -> Bool {
        guard let newest = try tables.newest() else { return true }
        if newest.id != snapshot {
            (snapshot, position, entryCount, byteCount) = (newest.id, newest.mark.position, 0, 0)
        }
        let grown = try tables.growth(above: position)
        position = grown.newest
        entryCount += grown.entries
        byteCount += grown.byteCount
        return entryCount >= limits.entriesBetweenSnapshots || byteCount >= limits.byteCountBetweenSnapshots
    }
}
