public import Base
import Synchronization

/// A place that work takes, of a bounded number. It is given back once: by the work when it ends, or by the caller when
/// the work has not begun. Any thread.
public final class WorkPlace: Sendable {
    private struct State {
        var hasBegun = false
        var hasEnded = false
        var isWanted = true
    }

    private let state = Mutex(State())
    private let giveBack: @Sendable () -> Void

    public init(_ giveBack: @escaping @Sendable () -> Void) { self.giveBack = giveBack }

    /// Whether the work began, perhaps to its end.
    public var hasBegun: Bool { state.withLock { $0.hasBegun } }

    /// Whether the caller still waits. Work that takes long asks now and then, and ends when nobody does.
    public var isWanted: Bool { state.withLock { $0.isWanted } }

    /// Whether the work still has its place. From now on, only its end gives the place back. A pool may run the work
    /// twice (`Work.execute`), and then calls this twice.
    func begin() -> Bool {
        state.withLock { state in
            if state.isWanted { state.hasBegun = true }
            return state.isWanted
        }
    }

    /// The work that began has ended. If it runs twice, its first end gives the place back.
    func end() {
        let isFirst = state.withLock { state in
            defer { state.hasEnded = true }
            return !state.hasEnded
        }
        if isFirst { giveBack() }
    }

    /// The caller waits no longer. Work that has not begun will not begin any more.
    func leave() {
        let hasBegun = state.withLock { state in
            state.isWanted = false
            return state.hasBegun
        }
        if !hasBegun { giveBack() }
    }
}

extension WorkerPool {
    /// Runs `work` on one of the threads, in a place that is taken until the work has ended or will never begin. A
    /// caller that no longer waits does not give the place back, because the work still holds its thread. When the
    /// answer comes, the place is free again. Otherwise as `run` without a place.
    public func run<Value: Sendable>(
        in place: WorkPlace, tenant: Text, source: Text = .empty, deadline: Instant, isPatient: Bool = false,
        _ work: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        defer { place.leave() }
        return try await run(tenant: tenant, source: source, deadline: deadline, isPatient: isPatient) {
            // The caller went away just when the work's turn came.
            guard place.begin() else { throw CancellationError() }
            defer { place.end() }
            return try work()
        }
    }
}
