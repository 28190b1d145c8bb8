import Base

/// The actions of a pool's thread while it has no work.
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

/// The share of the processors that the threads of a pool get.
public enum WorkerPriority: Sendable, Equatable {
    /// All of them have this nice value, 0...19.
    case lowered(by: Int32)
    /// The threads get the time that no other thread wants. Only the first thread has a nice value instead, so that the
    /// pool's work goes on while other threads want all there is.
    case spare(exceptFirst: Int32)

    func ofWorker(_ index: Int) -> ThreadPriority {
        switch self {
        case .lowered(let value): .niceness(value)
        case .spare(let value): index == 0 ? .niceness(value) : .idle
        }
    }
}
