import Base

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
}
