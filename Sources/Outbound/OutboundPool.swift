public import Base
public import Reactor

/// The pool whose threads call other servers, for `HTTPClient` and `SMTPClient` together.
///
/// A tenant has only so many of the threads (`WorkerPool.init`), so that a tenant whose servers hang takes none from
/// the other tenants. Its further requests wait for a short time. Any thread.
public struct OutboundPool: Sendable {
    private let pool: WorkerPool
    private let waitMax: Duration

    /// `waitMax`: how long a request or mail may wait for a thread.
    public init(_ pool: WorkerPool, waitMax: Duration = Limits().outboundWaitMax) {
        (self.pool, self.waitMax) = (pool, waitMax)
    }

    /// Runs `work` on a thread for `tenant`. `source`: whom it is for, among those who share the tenant's turns.
    ///
    /// `isPatient`: nobody waits for the work, which may take long (`WorkerShares`).
    ///
    /// - Throws: `OutboundError.overloaded` if too much of the tenant waits, or it has waited for too long; what the
    ///   work throws; the pool's other errors.
    func run<Value: Sendable>(
        tenant: Text, source: Text = .empty, deadline: Instant, isPatient: Bool = false,
        _ work: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        let place = WorkPlace {}
        let beginBy = Instant.now.advanced(by: waitMax)
        do {
            return try await pool.run(
                in: place, tenant: tenant, source: source, deadline: min(deadline, beginBy), isPatient: isPatient, work)
        } catch let failure as Failure where isRefusal(failure, of: place, beginBy: beginBy, deadline) {
            throw OutboundError.overloaded
        }
    }

    /// Whether the pool refused the work because too much waits, and not because the caller's time is over.
    private func isRefusal(_ failure: Failure, of place: WorkPlace, beginBy: Instant, _ deadline: Instant) -> Bool {
        guard !place.hasBegun else { return false }
        return failure.is(.serverOverloaded) || (failure.is(.deadlineExceeded) && beginBy < deadline)
    }
}
