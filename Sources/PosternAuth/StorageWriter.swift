import Base
import Synchronization

/// Writes the newest record to the storage, on a thread that lives while there is something to write.
///
/// A record that comes during a write replaces the one that waits: only the newest record matters.
final class StorageWriter: Sendable {
    enum Content: Sendable {
        case record([UInt8])
        /// Nobody is signed in.
        case nothing
    }

    typealias Outcome = Result<Void, AuthStorageError>

    private struct State {
        var wanted: Content?
        var waiters: [Promise<Outcome>] = []
        /// Completed when nothing is left to write.
        var settling: [Promise<Void>] = []
        var isRunning = false
        /// The error of the newest read or write. Nil when one has succeeded since.
        var error: AuthStorageError?
        /// The storage has a record that could not be used, and nothing was written since.
        var hasUnusableRecord = false
        /// The storage still has a user who was signed out.
        var owesRemoval = false
    }

    private let storage: any AuthStorage
    private let report: @Sendable (AuthStorageError) -> Void
    private let state = Mutex(State())

    init(_ storage: any AuthStorage, report: @escaping @Sendable (AuthStorageError) -> Void) {
        self.storage = storage
        self.report = report
    }

    var error: AuthStorageError? { state.withLock { $0.error } }
    var hasUnusableRecord: Bool { state.withLock { $0.hasUnusableRecord } }
    var owesRemoval: Bool { state.withLock { $0.owesRemoval } }

    /// Reads the record, blocking. Nil: there is no record, or (with `error` set and reported) none that can be used.
    func load<Value>(_ decode: ([UInt8]) throws(AuthStorageError) -> Value) -> Value? {
        do throws(AuthStorageError) {
            return try storage.load().map { record throws(AuthStorageError) in try decode(record) }
        } catch {
            state.withLock { ($0.error, $0.hasUnusableRecord) = (error, true) }
            report(error)
            return nil
        }
    }

    /// Takes the newest content. The caller must call `begin` after it has released its locks. `outcome` is completed
    /// once this content or a newer one was written, or failed.
    func enqueue(_ content: Content, outcome: Promise<Outcome>? = nil) {
        state.withLock { state in
            state.wanted = content
            if let outcome { state.waiters.append(outcome) }
        }
    }

    func begin() {
        let mustStart = state.withLock { state in
            guard !state.isRunning, state.wanted != nil else { return false }
            state.isRunning = true
            return true
        }
        guard mustStart else { return }
        // Without a thread the caller writes: what was enqueued must not be lost.
        do throws(ThreadError) {
            try OSThread.startDetached(name: "postern-storage") { [self] in run() }
        } catch {
            run()
        }
    }

    /// Returns when everything that was enqueued so far was written, or failed to be written.
    func settled() async {
        let promise = Promise<Void>()
        let isSettled = state.withLock { state in
            guard state.isRunning || state.wanted != nil else { return true }
            state.settling.append(promise)
            return false
        }
        if isSettled { return }
        begin()
        // Only ever succeeds.
        _ = try? await promise.value()
    }

    private enum Step {
        case write(Content, waiters: [Promise<Outcome>])
        /// Nothing is left to write. `settled`: the callers that waited for this.
        case end(settled: [Promise<Void>])
    }

    private func run() {
        while true {
            switch next() {
            case .write(let content, let waiters): write(content, for: waiters)
            case .end(let settled):
                for waiter in settled { waiter.succeed(()) }
                return
            }
        }
    }

    private func write(_ content: Content, for waiters: [Promise<Outcome>]) {
        let outcome = write(content)
        let error = if case .failure(let error) = outcome { error } else { AuthStorageError?.none }
        state.withLock { state in
            state.error = error
            guard error != nil else { return (state.owesRemoval, state.hasUnusableRecord) = (false, false) }
            if case .nothing = content { state.owesRemoval = true }
        }
        if let error { report(error) }
        for waiter in waiters { waiter.succeed(outcome) }
    }

    /// The next step of the writing thread. The end and the callers that waited for it are taken at once: callers that
    /// come later wait for newer content.
    private func next() -> Step {
        state.withLock { state in
            guard let content = state.wanted else {
                state.isRunning = false
                defer { state.settling = [] }
                return .end(settled: state.settling)
            }
            defer { (state.wanted, state.waiters) = (nil, []) }
            return .write(content, waiters: state.waiters)
        }
    }

    private func write(_ content: Content) -> Outcome {
        do throws(AuthStorageError) {
            switch content {
            case .record(let record): try storage.save(record)
            case .nothing: try storage.remove()
            }
            return .success(())
        } catch {
            return .failure(error)
        }
    }
}
