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
        let place = WorkPlace { [self] in isRunning.withLock { $0 = false } }
        return try await pool.run(in: place, tenant: WorkerPool.ownWork, deadline: deadline) { [digest] in
            try digest { place.isWanted }
        }
    }
}
