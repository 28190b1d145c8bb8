public import Base
import Reactor
public import Store
import Synchronization

/// Snapshots of the cluster that an admin asks for.
public final class ClusterSnapshots: Sendable {
    /// Makes a snapshot, and blocks its thread meanwhile; nil while another one is being made, and when the server
    /// stops.
    public typealias Maker = @Sendable () throws -> MadeSnapshot?

    private let pool: WorkerPool
    private let maker = Mutex<Maker?>(nil)

    init(pool: WorkerPool) { self.pool = pool }

    /// Sets the maker, once the server runs in its cluster. A server without a maker is in no cluster.
    public func make(by maker: @escaping Maker) { self.maker.withLock { $0 = maker } }

    /// NOT_IN_CLUSTER, SNAPSHOT_IN_PROGRESS, SNAPSHOT_FAILED, SERVER_OVERLOADED.
    public func make(deadline: Instant) async throws -> MadeSnapshot {
        guard let maker = maker.withLock({ $0 }) else {
            throw Failure(.notInCluster, "This server is in no cluster, so there is nobody to make a snapshot for.")
        }
        let made = try await pool.run(tenant: WorkerPool.ownWork, deadline: deadline) { () throws(Failure) in
            do {
                return try maker()
            } catch {
                throw Failure(.snapshotFailed, "The snapshot could not be made: \(error).")
            }
        }
        guard let made else {
            throw Failure(
                .snapshotInProgress,
                "A node is making a snapshot already, or this one stops; wait until the snapshot is there.")
        }
        return made
    }
}
