import Synchronization

/// The counters of a running loop's thread. Any thread reads; the loop's own writes, once per look at its sockets.
final class LiveCounters: Sendable {
    private let inFlightNow = Atomic<Int>(0)
    private let running = Atomic<Bool>(false)
    private let latest = Mutex<(number: Int, operations: [Int: SliceRecord], sentCount: Int)>((0, [:], 0))

    var inFlight: Int { inFlightNow.load(ordering: .relaxed) }
    func set(inFlight: Int) { inFlightNow.store(inFlight, ordering: .relaxed) }

    /// Whether the loop's thread is at work.
    var isRunning: Bool { running.load(ordering: .acquiring) }
    func begin() { running.store(true, ordering: .relaxed) }
    func end() { running.store(false, ordering: .releasing) }

    /// The newest whole second, and its number from 1 on; 0 before there is one.
    var second: (number: Int, operations: [Int: SliceRecord], sentCount: Int) { latest.withLock { $0 } }

    func publish(_ slice: Recorder.Slice, number: Int) {
        let operations = slice.operations.mapValues { operation in
            SliceRecord(response: Histogram(encoded: operation.response) ?? Histogram(), errors: operation.errors)
        }
        latest.withLock { $0 = (number, operations, slice.sentCount) }
    }
}
