import Synchronization

/// How far the mending of a store has come (`Store.mend`). Any thread.
final class Mending: Sendable {
    private struct State {
        var isRunning = false
        /// Whether the running mending has looked at everything.
        var isFinished = false
        /// Whether there is something that the running mending leaves for the next one.
        var isIncomplete = false
        /// Whether this process has mended the store, and found no damage since.
        var isDone = false
        /// The rows whose values were put in pieces since the mending began.
        var usedNames: Set<[UInt8]> = []
        var isOverfull = false
    }

    /// A mending during which more long values are put deletes no pieces.
    private static let usedNamesMax = 100_000

    private let state = Mutex(State())

    var isDone: Bool { state.withLock { $0.isDone } }

    /// Whether the running mending leaves nothing.
    var isWhole: Bool { state.withLock { $0.isRunning && !$0.isIncomplete } }

    /// Called on the writer's thread: each write after it says which rows it puts in pieces (`use`), and the reads that
    /// follow see each write before it.
    func begin() { state.withLock { $0 = State(isRunning: true) } }

    func finish() { state.withLock { $0.isFinished = true } }

    func end() { state.withLock { $0 = State(isDone: $0.isFinished && !$0.isIncomplete) } }

    /// Notes that a row has pieces now. The writer's thread only.
    func use(_ key: PieceKey) {
        state.withLock { state in
            guard state.isRunning else { return }
            if state.usedNames.count < Self.usedNamesMax {
                state.usedNames.insert(key.name)
            } else {
                state.isOverfull = true
            }
        }
    }

    /// Whether no row has got pieces of this name since the mending began. The writer's thread only.
    func mayDelete(_ name: [UInt8]) -> Bool {
        state.withLock { state in
            if state.isRunning, !state.isOverfull, !state.usedNames.contains(name) { return true }
            state.isIncomplete = true
            return false
        }
    }

    /// Notes that there is more to mend.
    func foundDamage() {
        state.withLock { state in
            state.isIncomplete = true
            state.isDone = false
        }
    }
}
