import Base
import Reactor

/// Makes guesses of unknown sources wait while their tenant or caller has spent its budget.
///
/// Runs on one event loop. Holds at most `Limits.strangersWaitingMax` guesses, and of one tenant at most
/// `strangersWaitingPerTenantMax`: the rate of guessing is then at most that many in `strangerWaitMax`.
actor WaitingRoom {
    private struct Waiter {
        let promise: Promise<Void>
        let releaseAt: Instant
    }

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let counters: GuessCounters
    private let waitersMax: Int
    private let waitersPerTenantMax: Int
    private var waiters: [UInt64: Waiter] = [:]
    private var counts: [UInt64: Int] = [:]
    private var lastID: UInt64 = 0

    init(limits: Limits, counters: GuessCounters, loop: EventLoop) {
        self.waitersMax = limits.strangersWaitingMax
        self.waitersPerTenantMax = limits.strangersWaitingPerTenantMax
        self.counters = counters
        self.loop = loop
    }

    private lazy var timer = Timer(on: loop) { [weak self] in self?.assumeIsolated { $0.release() } }

    /// Returns after `duration`. SERVER_OVERLOADED when there is no room; `CancellationError` when the call was
    /// cancelled, which its connection does at the deadline too.
    func wait(_ duration: Duration, tenant: UInt64) async throws {
        guard waiters.count < waitersMax, counts[tenant, default: 0] < waitersPerTenantMax else {
            counters.waitingRefused.add()
            throw Failure.noRoomToWait(retryAfter: duration)
        }
        let waiter = Waiter(promise: Promise(), releaseAt: Instant.now.advanced(by: duration))
        lastID += 1
        let id = lastID
        waiters[id] = waiter
        counts[tenant, default: 0] += 1
        counters.delayed.add()
        counters.waiting.add(1)
        defer { leave(id, tenant) }
        arm()
        try await waiter.promise.cancellableValue()
    }

    private func leave(_ id: UInt64, _ tenant: UInt64) {
        waiters[id] = nil
        let count = counts[tenant, default: 1] - 1
        counts[tenant] = count > 0 ? count : nil
        counters.waiting.add(-1)
        if waiters.isEmpty { timer.cancel() }
    }

    private func release() {
        let now = Instant.now
        for waiter in waiters.values where waiter.releaseAt <= now { waiter.promise.succeed(()) }
        // Released waiters leave by themselves, in their own turn.
        let next = waiters.values.lazy.map(\.releaseAt).filter { $0 > now }.min()
        if let next { timer.arm(at: next) }
    }

    private func arm() {
        guard let next = waiters.values.lazy.map(\.releaseAt).min() else { return }
        timer.arm(at: next)
    }
}

extension Failure {
    fileprivate static func noRoomToWait(retryAfter: Duration) -> Failure {
        Failure(
            .serverOverloaded, "Too many sign-ins are waiting; try again.",
            retryAfter: retryAfter)
    }
}
