public import Base
import Reactor
import Synchronization

/// Looks up the names of servers, each on a thread of its own, for as long as a request can wait.
///
/// Nothing ends a lookup that has begun: getaddrinfo(3) returns when the machine's resolver has an answer or gives up.
/// So a request whose time is over leaves its lookup behind. The lookups that run are bounded, those that were left
/// behind included, and the tenants share them as they share the threads of a pool (`WorkerShares`). The clients of one
/// pool share the lookups. Nothing is kept of an answer. Any thread.
public final class NameLookups: Sendable {
    /// Looks a name up, however long that takes. Empty if no address is found.
    public typealias Resolver = @Sendable (_ name: String) -> [IPAddress]

    /// The machine's own resolver.
    public static let system: Resolver = { IPAddress.lookUp($0, countMax: NameLookups.addressesMax) }
    /// The addresses of one name that are used.
    public static let addressesMax = 32

    private let resolve: Resolver
    private let shares: Mutex<WorkerShares>

    /// `countMax`: how many lookups may run at a time. A thread that sends requests waits for one at a time, so those
    /// beyond the number of these threads were left behind.
    public init(countMax: Int = Limits().outboundLookupsMax, resolve: @escaping Resolver = system) {
        self.resolve = resolve
        self.shares = Mutex(WorkerShares(workers: countMax))
    }

    /// How many lookups run, those that were left behind included.
    public var runningCount: Int { shares.withLock { $0.runningCount } }

    /// The addresses of `host`, in the order in which they should be tried. Blocks for `limit` at most.
    ///
    /// - Throws: CANNOT_RESOLVE; TIMED_OUT; OVERLOADED if too many lookups of this tenant, or of all, are running.
    @available(*, noasync, message: "blocks the thread")
    func addresses(of host: Text, tenant: Text, within limit: Duration) throws(OutboundError) -> [IPAddress] {
        if let known = Self.known(host) { return known }
        let lookup = Lookup()
        let mayBegin = shares.withLock { $0.begin(ObjectIdentifier(lookup), of: tenant, now: lookup.begun) }
        guard mayBegin else { throw .overloaded }
        do throws(ThreadError) {
            try OSThread.startDetached(name: "lookup") { [self] in
                let addresses = resolve(host.string)
                // Before the answer is given: whoever has it may look up another name at once.
                end(lookup)
                lookup.give(addresses)
            }
        } catch {
            end(lookup)
            throw .overloaded
        }
        guard let addresses = lookup.answer(within: limit) else { throw .timedOut }
        guard !addresses.isEmpty else { throw .cannotResolve }
        return addresses
    }

    private func end(_ lookup: Lookup) {
        let nanoseconds = Instant.now.nanoseconds(since: lookup.begun)
        shares.withLock { $0.ended(ObjectIdentifier(lookup), nanoseconds: nanoseconds) }
    }

    /// The addresses for which no resolver is needed: of an address in its usual notation, and of this machine by the
    /// names that RFC 6761 §6.3 keeps for it.
    private static func known(_ host: Text) -> [IPAddress]? {
        if let address = IPAddress(host.string) { return [address] }
        guard let label = host.bytes.split(separator: UInt8(ascii: ".")).last,
            label.map({ $0 | 0x20 }) == [UInt8]("localhost".utf8)
        else { return nil }
        return [IPAddress("::1"), IPAddress("127.0.0.1")].compactMap { $0 }
    }
}

/// One lookup, and its answer on the way from one thread to another.
private final class Lookup: Sendable {
    let begun = Instant.now
    private let isDone = Semaphore()
    private let addresses = Mutex<[IPAddress]?>(nil)

    func give(_ found: [IPAddress]) {
        addresses.withLock { $0 = found }
        isDone.signal()
    }

    /// Nil if there is no answer within `limit`. The lookup then goes on without a caller.
    @available(*, noasync, message: "blocks the thread")
    func answer(within limit: Duration) -> [IPAddress]? {
        _ = isDone.wait(for: limit)
        return addresses.withLock { $0 }
    }
}
