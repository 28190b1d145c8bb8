import Glibc
import Synchronization

/// Counts what runs in an environment, so that LMDB's memory is freed only when nothing does, and tells once that the
/// environment cannot be trusted any more. Any thread.
final class EnvironmentUses: Sendable {
    private let state = Mutex(State())

    private struct State {
        var isClosed = false
        /// Nil after it was called.
        var onFatal: (@Sendable (StoreError) -> Void)?
        var useCount = 0
        /// How each reader is retired.
        var readers: [ObjectIdentifier: @Sendable () -> Void] = [:]
    }

    func begin() throws(StoreError) {
        let isOpen = state.withLock { state in
            if !state.isClosed { state.useCount += 1 }
            return !state.isClosed
        }
        guard isOpen else { throw .closed }
    }

    func end() { state.withLock { $0.useCount -= 1 } }

    /// `close` calls `retire`, unless the reader was removed before.
    func add(_ reader: AnyObject, retire: @escaping @Sendable () -> Void) throws(StoreError) {
        let isOpen = state.withLock { state in
            if !state.isClosed { state.readers[ObjectIdentifier(reader)] = retire }
            return !state.isClosed
        }
        guard isOpen else { throw .closed }
    }

    func remove(_ reader: AnyObject) {
        state.withLock { _ = $0.readers.removeValue(forKey: ObjectIdentifier(reader)) }
    }

    /// Refuses new uses and readers, and waits for those that there are. False if it was called before.
    func close() -> Bool {
        let readers: [@Sendable () -> Void]? = state.withLock { state in
            if state.isClosed { return nil }
            state.isClosed = true
            defer { state.readers = [:] }
            return Array(state.readers.values)
        }
        guard let readers else { return false }
        for retire in readers { retire() }
        while state.withLock({ $0.useCount }) > 0 { usleep(100) }
        return true
    }

    /// Sets the handler that is called once, when the environment cannot be trusted any more.
    func onFatal(_ handler: @escaping @Sendable (StoreError) -> Void) {
        state.withLock { $0.onFatal = handler }
    }

    /// The environment cannot be trusted any more. A reader may be the first to get LMDB's error.
    func report(_ error: StoreError) {
        let handler = state.withLock { state in
            defer { state.onFatal = nil }
            return state.onFatal
        }
        handler?(error)
    }
}
