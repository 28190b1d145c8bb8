internal import Base
import Synchronization

/// Expired records that are damaged on this node of a cluster. The sweep passes them over for a day, and their rows in
/// the schedule stay as they are, so that another node, whose copies may be sound, deals with them when it sweeps. Any
/// thread.
///
/// Kept in memory only: after a restart a damaged record is tried, and told, once more.
final class DamagedExpiries: Sendable {
    /// With more damaged records than this, the oldest mark goes, and its record is tried again earlier.
    static let countMax = 10_000

    private let marks = Mutex<[(row: ExpiryKey, until: Timestamp)]>([])

    func passOver(_ row: ExpiryKey, until: Timestamp) {
        marks.withLock { marks in
            if marks.count == Self.countMax { marks.removeFirst() }
            marks.append((row, until))
        }
    }

    /// The rows that are passed over at `now`.
    func rows(now: Timestamp) -> Set<ExpiryKey> {
        marks.withLock { marks in
            marks.removeAll { $0.until <= now }
            return Set(marks.map { $0.row })
        }
    }
}
