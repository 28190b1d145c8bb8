import Base
import Reactor
import Synchronization

/// The lookups of names that run, and those that wait for a place. It is pure.
///
/// The tenants share the places as they share the threads of a pool (`WorkerShares`). Among the tenants whose lookups
/// wait, the one whose lookups took the least time goes next; the lookups of one tenant begin in their order
/// (`FairQueue`). So the places that become free do not go to the tenant that asks most often.
struct LookupQueue: Sendable {
    private let waitingMax: Int
    private var shares: WorkerShares
    private var waiting = FairQueue<Lookup>()

    /// `places`: how many lookups may run at a time, and how many more may wait.
    init(places: Int) {
        waitingMax = places
        shares = WorkerShares(workers: places)
    }

    var runningCount: Int { shares.runningCount }
    var waitingCount: Int { waiting.count }

    /// False if too many lookups wait already.
    mutating func append(_ lookup: Lookup) -> Bool {
        guard waiting.count < waitingMax else { return false }
        waiting.append(lookup, tenant: lookup.tenant)
        return true
    }

    /// The lookup whose turn it is, if there is a place for one. It counts as running.
    mutating func next(now: Instant) -> Lookup? {
        var shares = shares
        let next = waiting.popFirst { lookup, _ in
            shares.begin(ObjectIdentifier(lookup), of: lookup.tenant, now: now)
        }
        guard let next else { return nil }
        self.shares = shares
        waiting.began(tenant: next.tenant, cost: 0)
        return next
    }

    /// A lookup that `next` returned has ended. It had its place for so long.
    mutating func ended(_ lookup: Lookup, nanoseconds: Int64) {
        shares.ended(ObjectIdentifier(lookup), nanoseconds: nanoseconds)
        waiting.ended(tenant: lookup.tenant, cost: 0, actual: nanoseconds)
    }

    /// Takes the lookup out if it still waits. Otherwise returns false.
    mutating func remove(_ lookup: Lookup) -> Bool {
        waiting.remove(tenant: lookup.tenant, where: { $0 === lookup }) != nil
    }
}

/// One lookup, and its answer on the way from one thread to another.
final class Lookup: Sendable {
    let host: Text
    let tenant: Text
    private let hasBegun = Semaphore()
    private let isDone = Semaphore()
    private let outcome = Mutex<Result<[IPAddress], OutboundError>?>(nil)

    init(_ host: Text, tenant: Text) { (self.host, self.tenant) = (host, tenant) }

    func begin() { hasBegun.signal() }

    func give(_ result: Result<[IPAddress], OutboundError>) {
        outcome.withLock { $0 = result }
        isDone.signal()
    }

    /// Whether the lookup begins within `limit`.
    @available(*, noasync, message: "blocks the thread")
    func begins(within limit: Duration) -> Bool { hasBegun.wait(for: limit) }

    /// Throws TIMED_OUT if there is no answer within `limit`, or before `isWanted` returns false, which is asked twice
    /// a second. The lookup then goes on without a caller.
    @available(*, noasync, message: "blocks the thread")
    func answer(within limit: Duration, while isWanted: () -> Bool) throws(OutboundError) -> [IPAddress] {
        let end = Instant.now.advanced(by: limit)
        var remaining = limit
        while isWanted(), !isDone.wait(for: min(remaining, .milliseconds(500))) {
            remaining = .nanoseconds(end.nanoseconds(since: .now))
            guard remaining > .zero else { break }
        }
        guard let result = outcome.withLock({ $0 }) else { throw .timedOut }
        return try result.get()
    }
}
