import Base

/// The actions of a pool's thread while it has no work.
public struct WorkerIdling: Sendable {
    /// Called when no work waits any more, after the finished works were answered.
    let pause: @Sendable () -> Void
    /// Called once if no work came for `restAfter`, and before the thread ends.
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
