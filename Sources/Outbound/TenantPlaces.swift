public import Base
import Reactor
import Synchronization

/// The places of each tenant among the requests and mails that are under way, so that a tenant whose servers hang takes
/// no threads from the other tenants. How many of them run at a time is the pool's matter (`WorkerShares`); the others
/// wait there for a short time. The clients of one pool share the places. Any thread.
public final class TenantPlaces: Sendable {
    private let countMax: Int
    private let waitMax: Duration
    private let counts = Mutex<[Text: Int]>([:])

    /// `perTenant`: how many requests and mails together one tenant may have waiting or running. `waitMax`: how long
    /// one may wait for a thread.
    public init(perTenant countMax: Int, waitMax: Duration = Limits().outboundWaitMax) {
        (self.countMax, self.waitMax) = (countMax, waitMax)
    }

    /// Runs `work` on a thread of `pool`, in a place of `tenant`.
    ///
    /// `isPatient`: nobody waits for the work, which may take long (`WorkerShares`).
    ///
    /// - Throws: `OutboundError.overloaded` if the tenant has no place left, or too many wait, or it has waited for too
    ///   long; what the work throws; the pool's other errors.
    func run<Value: Sendable>(
        on pool: WorkerPool, tenant: Text, deadline: Instant, isPatient: Bool = false,
        _ work: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        try take(tenant)
        let place = WorkPlace { [self] in giveBack(tenant) }
        let beginBy = Instant.now.advanced(by: waitMax)
        do {
            return try await pool.run(
                in: place, tenant: tenant, deadline: min(deadline, beginBy), isPatient: isPatient, work)
        } catch let failure as Failure where isRefusal(failure, of: place, beginBy: beginBy, deadline) {
            throw OutboundError.overloaded
        }
    }

    /// Whether the pool refused the work because too much waits, and not because the caller's time is over.
    private func isRefusal(_ failure: Failure, of place: WorkPlace, beginBy: Instant, _ deadline: Instant) -> Bool {
        guard !place.hasBegun else { return false }
        return failure.is(.serverOverloaded) || (failure.is(.deadlineExceeded) && beginBy < deadline)
    }

    private func take(_ tenant: Text) throws(OutboundError) {
        let isTaken = counts.withLock { counts in
            guard counts[tenant, default: 0] < countMax else { return false }
            counts[tenant, default: 0] += 1
            return true
        }
        if !isTaken { throw .overloaded }
    }

    private func giveBack(_ tenant: Text) {
        counts.withLock { counts in
            let count = counts[tenant, default: 0] - 1
            counts[tenant] = count > 0 ? count : nil
        }
    }
}
