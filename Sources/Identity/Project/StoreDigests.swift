public import Base
import Reactor
public import Store
import Synchronization

/// Digests of the whole store, one at a time: each reads all of it.
public final class StoreDigests: Sendable {
    private let store: Store
    private let pool: WorkerPool
    private let isRunning = Mutex(false)

    init(_ store: Store, pool: WorkerPool) { (self.store, self.pool) = (store, pool) }

    /// DIGEST_IN_PROGRESS, SERVER_OVERLOADED.
    public func compute(deadline: Instant) async throws -> StoreDigest {
        try isRunning.withLock { isRunning throws(Failure) in
            guard !isRunning else {
                throw Failure(
                    .digestInProgress, "Another digest of the store is being computed; wait until it has ended.")
            }
            isRunning = true
        }
        defer { isRunning.withLock { $0 = false } }
        return try await pool.run(tenant: WorkerPool.ownWork, deadline: deadline) { [store] in try store.digest() }
    }
}
