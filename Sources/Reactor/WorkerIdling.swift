import Base

/// What the threads of a pool do while they have no work, each on its own.
public struct WorkerIdling: Sendable {
    /// Called when no work waits any more. The answers of what was done have been given.
    let pause: @Sendable () -> Void
    /// Called once when no work came for `restAfter`, and before the thread ends.
    let rest: @Sendable () -> Void
    let restAfter: Duration

    public init(
        pause: @escaping @Sendable () -> Void, rest: @escaping @Sendable () -> Void, restAfter: Duration
    ) {
        self.pause = pause
        self.rest = rest
        self.restAfter = restAfter
    }
}

/// How much of the processors the threads of a pool get that other threads want too.
public enum WorkerPriority: Sendable, Equatable {
    /// All of them have this nice value, 0...19.
    case lowered(by: Int32)
    /// They get what nobody else wants. Only the first one has a nice value instead, so that the work of the pool goes
    /// on while others want all there is.
    case spare(exceptFirst: Int32)

    func ofWorker(_ index: Int) -> ThreadPriority {
        switch self {
        case .lowered(let value): .niceness(value)
        case .spare(let value): index == 0 ? .niceness(value) : .idle
        }
    }
}
