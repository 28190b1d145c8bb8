import Base
import Synchronization

/// A thread for one task. The task's work outside of actors runs on the thread and may block.
final class ListenerThread: TaskExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        var isOver = false
    }

    private let state = Mutex(State())
    private let wakeUp = Semaphore()

    /// Returns at once. The thread ends when `body` does.
    static func run(_ body: @escaping @Sendable () async -> Void) {
        let thread = ListenerThread()
        guard (try? OSThread.startDetached(name: "postern-listen") { thread.runJobs() }) != nil else {
            // The system has no room for a thread: better a listener on Swift's pool than no listener.
            Task { await body() }
            return
        }
        Task(executorPreference: thread) {
            await body()
            thread.end()
        }
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        state.withLock { $0.jobs.append(job) }
        wakeUp.signal()
    }

    private func end() {
        state.withLock { $0.isOver = true }
        wakeUp.signal()
    }

    private func runJobs() {
        while true {
            wakeUp.wait()
            let (jobs, isOver) = state.withLock { state in
                defer { state.jobs = [] }
                return (state.jobs, state.isOver)
            }
            for job in jobs { job.runSynchronously(on: asUnownedTaskExecutor()) }
            // The task's last job has set `isOver`.
            if isOver { return }
        }
    }
}
