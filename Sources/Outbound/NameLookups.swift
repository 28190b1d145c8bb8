public import Base
import Reactor
import Synchronization

/// Looks up the names of servers, each on a thread of its own, for as long as a request can wait.
///
/// Nothing ends a lookup that has begun: getaddrinfo(3) returns when the machine's resolver has an answer or gives up.
/// So a request whose time is over leaves its lookup behind. The lookups that run are bounded, those that were left
/// behind included. A lookup without a place waits a moment for its turn (`LookupQueue`). The clients of one pool share
/// the lookups. Nothing is kept of an answer. Any thread.
public final class NameLookups: Sendable {
    /// Looks a name up, however long that takes. Empty if no address is found.
    public typealias Resolver = @Sendable (_ name: String) -> [IPAddress]

    /// The machine's own resolver.
    public static let system: Resolver = { IPAddress.lookUp($0, countMax: NameLookups.addressesMax) }
    /// The addresses of one name that are used.
    public static let addressesMax = 32

    private let resolve: Resolver
    private let placeWaitMax: Duration
    private let queue: Mutex<LookupQueue>

    /// `countMax`: how many lookups may run at a time. A thread that sends requests waits for one at a time, so those
    /// beyond the number of these threads were left behind. `placeWaitMax`: how long one may wait for its turn. A
    /// request that waited for a second does not count as slow for that alone (`WorkerShares`).
    public init(
        countMax: Int = Limits().outboundLookupsMax, placeWaitMax: Duration = .seconds(1),
        resolve: @escaping Resolver = system
    ) {
        self.resolve = resolve
        self.placeWaitMax = placeWaitMax
        self.queue = Mutex(LookupQueue(places: countMax))
    }

    /// How many lookups run, those that were left behind included.
    public var runningCount: Int { queue.withLock { $0.runningCount } }
    /// How many lookups wait for a place.
    var waitingCount: Int { queue.withLock { $0.waitingCount } }

    /// The addresses of `host`, in the order in which they should be tried. Blocks for `limit` at most, and no longer
    /// than `isWanted` returns true.
    ///
    /// - Throws: CANNOT_RESOLVE; TIMED_OUT; OVERLOADED if no place became free in time, because too many lookups of
    ///   this tenant, or of all, are running.
    @available(*, noasync, message: "blocks the thread")
    func addresses(
        of host: Text, tenant: Text, within limit: Duration, while isWanted: () -> Bool = { true }
    ) throws(OutboundError) -> [IPAddress] {
        if let known = IPAddress.known(host) { return known }
        let giveUpAt = Instant.now.advanced(by: limit)
        let lookup = Lookup(host, tenant: tenant)
        guard queue.withLock({ $0.append(lookup) }) else { throw .overloaded }
        beginNext()
        // A lookup that is not taken out of the queue has begun just now.
        if !lookup.begins(within: min(limit, placeWaitMax)), queue.withLock({ $0.remove(lookup) }) {
            throw .overloaded
        }
        let addresses = try lookup.answer(
            within: .nanoseconds(giveUpAt.nanoseconds(since: .now)), while: isWanted)
        guard !addresses.isEmpty else { throw .cannotResolve }
        return addresses
    }

    /// Begins the lookups for which there are places.
    private func beginNext() {
        while let lookup = queue.withLock({ $0.next(now: .now) }) { begin(lookup) }
    }

    private func begin(_ lookup: Lookup) {
        let begun = Instant.now
        lookup.begin()
        do throws(ThreadError) {
            try OSThread.startDetached(name: "lookup") { [self] in
                let addresses = resolve(lookup.host.string)
                // Before the answer is given: whoever has it may look up another name at once.
                end(lookup, since: begun)
                lookup.give(.success(addresses))
                beginNext()
            }
        } catch {
            end(lookup, since: begun)
            lookup.give(.failure(.overloaded))
        }
    }

    private func end(_ lookup: Lookup, since begun: Instant) {
        let nanoseconds = Instant.now.nanoseconds(since: begun)
        queue.withLock { $0.ended(lookup, nanoseconds: nanoseconds) }
    }
}
