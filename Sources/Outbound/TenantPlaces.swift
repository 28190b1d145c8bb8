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
    /// The place is taken until the work has ended or will never begin. A caller that no longer waits does not give it
    /// back, because the work still holds its thread. When the answer comes, the place is free again.
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
        let place = TenantPlace { [self] in giveBack(tenant) }
        defer { place.leave() }
        let beginBy = Instant.now.advanced(by: waitMax)
        do {
            return try await pool.run(tenant: tenant, deadline: min(deadline, beginBy), isPatient: isPatient) {
                // The caller went away just when the work's turn came.
                guard place.begin() else { throw CancellationError() }
                defer { place.end() }
                return try work()
            }
        } catch let failure as Failure where isRefusal(failure, of: place, beginBy: beginBy, deadline) {
            throw OutboundError.overloaded
        }
    }

    /// Whether the pool refused the work because too much waits, and not because the caller's time is over.
    private func isRefusal(_ failure: Failure, of place: TenantPlace, beginBy: Instant, _ deadline: Instant) -> Bool {
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

/// One place. It is given back once: by the work when it ends, or by the caller when the work has not begun.
private final class TenantPlace: Sendable {
    private enum Stage {
        case waiting, running, givenBack
    }

    private let stage = Mutex(Stage.waiting)
    private let giveBack: @Sendable () -> Void

    init(_ giveBack: @escaping @Sendable () -> Void) { self.giveBack = giveBack }

    /// Whether the work still has its place. From now on, only its end gives the place back.
    func begin() -> Bool {
        stage.withLock { stage in
            if stage == .waiting { stage = .running }
            return stage == .running
        }
    }

    var hasBegun: Bool { stage.withLock { $0 != .waiting } }

    func end() { giveBack(unless: .givenBack) }

    /// The caller waits no longer. Work that has not begun will not begin any more.
    func leave() { giveBack(unless: .givenBack, .running) }

    private func giveBack(unless stages: Stage...) {
        let isOver = stage.withLock { stage in
            guard !stages.contains(stage) else { return false }
            stage = .givenBack
            return true
        }
        if isOver { giveBack() }
    }
}
