import Base
import Reactor
import Rules

/// Makes guesses of unknown sources wait while their tenant or caller has spent its budget.
///
/// Runs on one event loop. Holds at most `Limits.strangersWaitingMax` guesses, and of one tenant at most
/// `strangersWaitingPerTenantMax`: the rate of guessing is then at most that many in `strangerWaitMax`. When the room
/// is full, the latest guess of the tenant with the most gives its place to a tenant that has fewer.
actor WaitingRoom {
    private struct Waiter {
        let promise: Promise<Void>
        let releaseAt: Instant
        let tenant: UInt64
    }

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let counters: GuessCounters
    private let waitersPerTenantMax: Int
    private var waiters: [UInt64: Waiter] = [:]
    private var shares: TenantShares<UInt64>
    private var lastID: UInt64 = 0

    init(limits: Limits, counters: GuessCounters, loop: EventLoop) {
        self.shares = TenantShares(countMax: limits.strangersWaitingMax)
        self.waitersPerTenantMax = limits.strangersWaitingPerTenantMax
        self.counters = counters
        self.loop = loop
    }

    private lazy var timer = Timer(on: loop) { [weak self] in self?.assumeIsolated { $0.release() } }

    /// Returns after `duration`. SERVER_OVERLOADED when there is no room; `CancellationError` when the call was
    /// cancelled, which its connection does at the deadline too.
    func wait(_ duration: Duration, tenant: UInt64) async throws {
        guard shares.count(of: tenant) < waitersPerTenantMax, makeRoom(for: tenant) else {
            counters.waitingRefused.add()
            throw Failure.noRoomToWait(retryAfter: duration)
        }
        let waiter = Waiter(promise: Promise(), releaseAt: Instant.now.advanced(by: duration), tenant: tenant)
        lastID += 1
        let id = lastID
        waiters[id] = waiter
        shares.entered(tenant)
        counters.delayed.add()
        counters.waiting.add(1)
        defer { leave(id) }
        arm()
        try await waiter.promise.cancellableValue()
    }

    private func makeRoom(for tenant: UInt64) -> Bool {
        switch shares.verdict(for: tenant) {
        case .hasRoom: return true
        case .refused: return false
        case .takes(let other):
            let latest = waiters.lazy.filter { $0.value.tenant == other }.max { $0.key < $1.key }
            guard let latest else { return false }
            let rest = Duration.nanoseconds(max(1, latest.value.releaseAt.nanoseconds(since: .now)))
            latest.value.promise.fail(Failure.noRoomToWait(retryAfter: rest))
            counters.waitingRefused.add()
            leave(latest.key)
            return true
        }
    }

    /// A guess that was turned away has left already when its call comes here.
    private func leave(_ id: UInt64) {
        guard let waiter = waiters.removeValue(forKey: id) else { return }
        shares.left(waiter.tenant)
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
