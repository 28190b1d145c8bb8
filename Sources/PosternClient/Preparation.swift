import Base
import Synchronization

/// What must be done before a connection can be begun, and may block: looking a name up, reading the files of TLS.
struct Preparation {
    enum Result: Sendable {
        case addresses(Swift.Result<[ResolvedAddress], Failure>)
        case tls(Swift.Result<ClientTLS, Failure>)
    }

    let id: Int
    let action: LoadBalancer.Action
    /// The channel stops waiting for it then. The worker goes on: the system cannot be told to stop.
    let until: Instant
}

/// The threads that do what may block while channels connect. All channels of the process share them, so that a name
/// server which does not answer holds up other look-ups at most, and no call on a connection.
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

    /// Runs `work` on a thread, when one is free. False: too much waits already, and `work` is dropped.
    func run(_ work: @escaping @Sendable () -> Void) -> Bool {
        let (isTaken, needsThread) = state.withLock { state in
            guard state.waiting.count < waitingMax else { return (false, false) }
            state.waiting.append(work)
            guard state.threadCount < threadsMax else { return (true, false) }
            state.threadCount += 1
            return (true, true)
        }
        // Threads end when nothing waits: a process that has connected keeps none.
        if needsThread { OSThread.startDetached(name: "postern-lookup") { self.workUntilNothingWaits() } }
        return isTaken
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
