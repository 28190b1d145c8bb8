public import Base
import Reactor
public import Store
import Synchronization

/// Digests of the whole store, one at a time: each reads all of it.
public final class StoreDigests: Sendable {
    /// Computes a digest as long as the argument answers true.
    typealias Compute = @Sendable (() -> Bool) throws -> StoreDigest

    private let digest: Compute
    private let pool: WorkerPool
    private let isRunning = Mutex(false)

    init(pool: WorkerPool, _ digest: @escaping Compute) { (self.digest, self.pool) = (digest, pool) }

    /// DIGEST_IN_PROGRESS, SERVER_OVERLOADED. A digest that nobody waits for any more ends soon, and the next one may
    /// begin when it has ended.
    public func compute(deadline: Instant) async throws -> StoreDigest {
        try isRunning.withLock { isRunning throws(Failure) in
            guard !isRunning else {
                throw Failure(
                    .digestInProgress, "Another digest of the store is being computed; wait until it has ended.")
            }
            isRunning = true
        }
        let place = DigestPlace { [self] in isRunning.withLock { $0 = false } }
        defer { place.leave() }
        return try await pool.run(tenant: WorkerPool.ownWork, deadline: deadline) { [digest] in
            guard place.begin() else { throw CancellationError() }
            defer { place.end() }
            return try digest { place.isWanted }
        }
    }
}

/// The place of the one digest. It is free again when the work has ended, or when the call has ended before the work
/// began.
private final class DigestPlace: Sendable {
    private let state = Mutex(State())
    private let giveBack: @Sendable () -> Void

    private struct State {
        var isRunning = false
        var isWanted = true
    }

    init(_ giveBack: @escaping @Sendable () -> Void) { self.giveBack = giveBack }

    /// Whether the call still waits.
    var isWanted: Bool { state.withLock { $0.isWanted } }

    /// The work begins. False if the call has ended before.
    func begin() -> Bool {
        state.withLock { state in
            state.isRunning = state.isWanted
            return state.isWanted
        }
    }

    /// The work that had begun has ended.
    func end() {
        let isLast = state.withLock { state in
            state.isRunning = false
            return !state.isWanted
        }
        if isLast { giveBack() }
    }

    /// The call has ended, with or without the digest.
    func leave() {
        let isLast = state.withLock { state in
            state.isWanted = false
            return !state.isRunning
        }
        if isLast { giveBack() }
    }
}
