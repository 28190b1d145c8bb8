import Base

/// A thread's share of a run, whatever its connections are.
///
/// Made and read by the main thread, run by one other.
protocol Load: AnyObject, Sendable {
    /// The figures of the last run.
    var recorder: Recorder { get }
    var connectionsLost: Int { get }
    var sessions: [Session] { get }
    var live: LiveCounters { get }
    /// CPUs that the thread used while the last run counted, up to its last whole slice; 0 before there is one.
    var busyShare: Double { get }

    /// May be called again when it has returned: the connections are kept.
    func run(_ periods: RunPeriods, _ pacing: Pacing, isInterrupted: () -> Bool) throws(BenchError)
}
