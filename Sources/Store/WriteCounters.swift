public import Base

/// The writer's counters, read by whoever asks.
struct WriteCounters: Sendable {
    let batches = Counter()
    let commits = Counter()
    let writes = Counter()
    let failures = Counter()
    let reruns = Counter()
    let refusals = Counter()
    /// What the data file takes on the disk, and whether the store is in any `StoreTrouble`.
    let fileBytes = Gauge()
    let troubles = Gauge()
    let witnessFailures = Counter()
    let journal = JournalCounters()
}

/// What a node of a cluster did with its journal.
public struct JournalCounters: Sendable {
    /// Entries of this node's, and those of others that it read.
    public let appended = Counter()
    public let applied = Counter()
    /// Entries that came too late: another node's was first, and the writes in them were decided again.
    public let outrun = Counter()
    public let connectionsLost = Counter()
    public let appendDurations = DurationHistogram()
}
