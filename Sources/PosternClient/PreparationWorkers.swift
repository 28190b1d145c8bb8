import Base
import Synchronization

/// The threads for the blocking work of connecting. All channels of the process share them, so that a name server that
/// does not answer holds up other look-ups at most, and no call on a connection.
final class PreparationWorkers: Sendable {
    static let shared = PreparationWorkers(threadsMax: 8, waitingMax: 4_096)

    private struct State {
        var waiting: ArraySlice<@Sendable () -> Void> = []
        var threadCount = 0
    }

    private let state = Mutex(State())
    private let threadsMax: Int
    private let waitingMax: Int

    init(threadsMax: Int, waitingMax: Int) {
        self.threadsMax = threadsMax
        self.waitingMax = waitingMax
    }

    /// Runs `work` on a thread, when one is free. False: too many jobs wait already, or the system starts no thread;
    /// `work` is dropped.
    func run(_ work: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            guard state.waiting.count < waitingMax else { return false }
            // Threads end when nothing waits: a process that has connected keeps none. A new thread waits for the lock.
            if state.threadCount < threadsMax, startThread() { state.threadCount += 1 }
            guard state.threadCount > 0 else { return false }
            state.waiting.append(work)
            return true
        }
    }

    private func startThread() -> Bool {
        (try? OSThread.startDetached(name: "postern-lookup") { self.workUntilNothingWaits() }) != nil
    }

    private func workUntilNothingWaits() {
        while let work = takeOrEnd() { work() }
    }

    private func takeOrEnd() -> (@Sendable () -> Void)? {
        state.withLock { state in
            guard let work = state.waiting.popFirst() else {
                state.waiting = []
                state.threadCount -= 1
                return nil
            }
            return work
        }
    }
}
