public import Base

/// The writer's counters, which any thread may read.
struct WriteCounters: Sendable {
    let batches = Counter()
    let commits = Counter()
    let writes = Counter()
    let failures = Counter()
    let reruns = Counter()
    let refusals = Counter()
    /// The most records that one write of a call changed.
    let largestWrite = Gauge()
    /// The bytes of the data file on the disk, and whether the store is in any `StoreTrouble`.
    let fileBytes = Gauge()
    let troubles = Gauge()
    /// Whether there is no room, or the disk takes no writes, perhaps beside another trouble.
    let shortages = Gauge()
    let witnessFailures = Counter()
    let journal = JournalCounters()
    /// Since when the writer's thread has waited for the disk, in nanoseconds of `Instant`; 0 while it does not wait.
    private let diskWaitBegan = Gauge()
}

extension WriteCounters {
    /// Runs a call that waits for the disk. The writer's thread only; such calls are not nested.
    func waitingForDisk<Value>(_ call: () -> Value) -> Value {
        diskWaitBegan.set(Instant.now.nanoseconds)
        defer { diskWaitBegan.set(0) }
        return call()
    }

    /// How long the writer's thread has waited for the disk; zero while it does not wait. Any thread.
    var diskWait: Duration {
        let began = diskWaitBegan.value
        guard began != 0 else { return .zero }
        return .nanoseconds(max(0, Instant.now.nanoseconds(since: Instant(nanoseconds: began))))
    }
}

/// Counters of what a node of a cluster did with its journal.
public struct JournalCounters: Sendable {
    /// Entries of this node, and entries of other nodes that it read.
    public let appended = Counter()
    public let applied = Counter()
    /// Entries that came too late: another node's entry was first, and the writes in them were decided again.
    public let outrun = Counter()
    /// Turns that this node was given, because it had been outrun again and again.
    public let turns = Counter()
    public let connectionsLost = Counter()
    public let appendDurations = DurationHistogram()
}
