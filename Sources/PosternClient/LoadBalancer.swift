import Base

/// Decides which servers a channel connects to, and when: the policy, the order, the pauses. Pure; the channel's loop
/// carries out the actions and reports their results.
///
/// Connections name their endpoint by its id. A report about an id that is gone has no effect.
struct LoadBalancer {
    enum Action: Equatable {
        case lookUp(server: Int)
        case connect(endpoint: Int)
    }

    /// The way to one more connection beside those that are ready.
    enum Further {
        case connect(endpoint: Int)
        case wait(server: Int, Endpoint.Pause)
        /// No endpoint is ready.
        case none
    }

    /// The state of the look-ups of a server's name.
    private struct Name {
        var isRunning = false
        /// An endpoint of the name failed or was lost since: perhaps the name has other addresses by now.
        var isStale = false
        var lookedUpAt: Instant?
    }

    let policy: LoadBalancingPolicy
    let servers: [ServerAddress]
    private(set) var endpoints: [Endpoint] = []
    private var names: [Name]
    private let backoff: ReconnectBackoff
    private let connectionsMax: Int
    private let addressesPerNameMax: Int
    private let lookupIntervalMin: Duration
    private var nextID = 0
    /// The newest failure of all endpoints.
    private var newest: (server: Int, failure: Failure)?

    init(_ servers: [ServerAddress], _ options: ChannelOptions) {
        self.policy = options.loadBalancing
        self.servers = servers
        self.backoff = options.reconnect
        self.connectionsMax = options.connectionsMax
        self.addressesPerNameMax = options.limits.channel.addressesPerNameMax
        self.lookupIntervalMin = options.limits.channel.lookupIntervalMin
        self.names = servers.map { _ in Name() }
        for (index, server) in servers.enumerated() { endpoints.append(makeEndpoint(index, server.numeric)) }
    }

    private mutating func makeEndpoint(_ server: Int, _ address: ResolvedAddress?) -> Endpoint {
        defer { nextID += 1 }
        return Endpoint(id: nextID, server: server, address: address, backoff: backoff)
    }

    func endpoint(_ id: Int) -> Endpoint? { endpoints.first { $0.id == id } }

    /// True if a call that one server cannot take may go to another one.
    var hasAlternatives: Bool { endpoints.count > 1 }
    var hasReady: Bool { endpoints.contains(where: \.isReady) }
    var isUnderway: Bool { endpoints.contains(where: \.isUnderway) }

    // Actions

    /// The next action. Nil: there is none for now. The caller begins the action, and asks again.
    mutating func next(now: Instant) -> Action? {
        guard let index = nextIndex(now: now) else { return nil }
        let server = endpoints[index].server
        if endpoints[index].address == nil || mustLookUp(server, now: now) {
            endpoints[index].state = .lookingUp
            names[server].isRunning = true
            return .lookUp(server: server)
        }
        endpoints[index].state = .connecting
        return .connect(endpoint: endpoints[index].id)
    }

    /// The connections that are ready or being made.
    private var connectionCount: Int {
        endpoints.reduce(0) { count, endpoint in
            switch endpoint.state {
            case .ready(let readyCount): count + readyCount
            case .lookingUp, .connecting: count + 1
            case .idle, .left, .pausing: count
            }
        }
    }

    private func nextIndex(now: Instant) -> Int? {
        let isServed = hasReady || isUnderway
        switch policy {
        case .pickFirst:
            if isServed { return nil }
            return firstDue(now: now) ?? endpoints.firstIndex { $0.isLeft(before: nil) }
        case .roundRobin:
            if connectionCount >= connectionsMax { return nil }
            return endpoints.firstIndex {
                !names[$0.server].isRunning && ($0.isDue(now: now) || $0.isLeft(before: isServed ? now : nil))
            }
        }
    }

    /// The endpoint whose turn it is. Those that failed come again in the order in which they failed, after all others:
    /// connecting to a dead address takes longer than the pause of another one, and would always come before the rest.
    private func firstDue(now: Instant) -> Int? {
        endpoints.indices.filter { endpoints[$0].isDue(now: now) }
            .min { endpoints[$0].failedAt < endpoints[$1].failedAt }
    }

    private func mustLookUp(_ server: Int, now: Instant) -> Bool {
        guard servers[server].numeric == nil, names[server].isStale, let last = names[server].lookedUpAt else {
            return false
        }
        return last.advanced(by: lookupIntervalMin) <= now
    }

    /// The next time at which `next` may return an action that it does not return now.
    func nextAttempt() -> Instant {
        switch policy {
        case .pickFirst: if hasReady || isUnderway { return .distantFuture }
        case .roundRobin: if connectionCount >= connectionsMax { return .distantFuture }
        }
        return endpoints.reduce(.distantFuture) { earliest, endpoint in
            if names[endpoint.server].isRunning { return earliest }
            return switch endpoint.state {
            case .pausing(let pause): min(earliest, pause.until)
            case .left(let until): min(earliest, until)
            case .idle, .lookingUp, .connecting, .ready: earliest
            }
        }
    }

    /// The endpoint for one more connection: the ready endpoint with the fewest connections.
    func further(now: Instant) -> Further {
        var best: (endpoint: Endpoint, count: Int)?
        for endpoint in endpoints {
            guard case .ready(let count) = endpoint.state, count < best?.count ?? .max else { continue }
            best = (endpoint, count)
        }
        guard let best else { return .none }
        guard let pause = best.endpoint.furtherPause, pause.until > now else {
            return .connect(endpoint: best.endpoint.id)
        }
        return .wait(server: best.endpoint.server, pause)
    }

    /// Why no server can be reached, and the time of the next attempt. Nil: some endpoint is ready, in progress, or
    /// due.
    func outage(now: Instant) -> Failure? {
        guard let newest, !hasReady, !isUnderway else { return nil }
        var until = Instant.distantFuture
        for endpoint in endpoints {
            guard case .pausing(let pause) = endpoint.state, pause.until > now else { return nil }
            until = min(until, pause.until)
        }
        return describe(newest.failure, server: newest.server, retryAfter: .nanoseconds(until.nanoseconds(since: now)))
    }

    /// The failure as callers get it.
    func describe(_ failure: Failure, server: Int, retryAfter: Duration) -> Failure {
        var failure = failure
        let others = servers.count == 1 ? "" : ", the last of \(servers.count) servers that were tried"
        failure.message = "Cannot reach \(servers[server])\(others): \(failure.message)"
        failure.retryAfter = retryAfter
        return failure
    }

    mutating func hasten(interval: Duration) {
        for index in endpoints.indices { endpoints[index].hasten(interval: interval) }
    }

    // Results

    /// The server's name was looked up. Returns the endpoints that are gone: their connections take no more calls.
    mutating func lookedUp(
        _ server: Int, _ result: Result<[ResolvedAddress], Failure>, now: Instant,
        using generator: inout some RandomNumberGenerator
    ) -> [Int] {
        guard names[server].isRunning else { return [] }
        names[server] = Name(lookedUpAt: now)
        switch result {
        case .success(let addresses) where !addresses.isEmpty: return replace(server, addresses)
        case .success: lookupFailed(server, .connectionFailed("The name has no address."), now: now, using: &generator)
        case .failure(let failure): lookupFailed(server, failure, now: now, using: &generator)
        }
        return []
    }

    private mutating func lookupFailed(
        _ server: Int, _ failure: Failure, now: Instant, using generator: inout some RandomNumberGenerator
    ) {
        for index in endpoints.indices where endpoints[index].server == server {
            guard endpoints[index].state == .lookingUp else { continue }
            if endpoints[index].address == nil {
                endpoints[index].failed(failure, now: now, using: &generator)
                newest = (server, failure)
            } else {
                // The former addresses may still be good.
                endpoints[index].state = .idle
            }
        }
    }

    private mutating func replace(_ server: Int, _ addresses: [ResolvedAddress]) -> [Int] {
        guard let start = endpoints.firstIndex(where: { $0.server == server }) else { return [] }
        var former = endpoints.filter { $0.server == server }
        endpoints.removeAll { $0.server == server }
        var present: [Endpoint] = []
        for address in addresses where present.count < addressesPerNameMax {
            if present.contains(where: { $0.address == address }) { continue }
            if let known = former.firstIndex(where: { $0.address == address }) {
                var endpoint = former.remove(at: known)
                if endpoint.state == .lookingUp { endpoint.state = .idle }
                present.append(endpoint)
            } else {
                present.append(makeEndpoint(server, address))
            }
        }
        endpoints.insert(contentsOf: present, at: start)
        return former.map(\.id)
    }

    /// The server answered on a new connection.
    mutating func connected(_ id: Int) {
        guard let index = endpoints.firstIndex(where: { $0.id == id }) else { return }
        endpoints[index].connected()
        guard policy == .pickFirst else { return }
        for other in endpoints.indices {
            if case .left = endpoints[other].state { endpoints[other].state = .idle }
        }
    }

    /// An attempt to connect failed.
    mutating func failed(
        _ id: Int, _ failure: Failure, now: Instant, using generator: inout some RandomNumberGenerator
    ) {
        guard let index = endpoints.firstIndex(where: { $0.id == id }) else { return }
        endpoints[index].failed(failure, now: now, using: &generator)
        newest = (endpoints[index].server, failure)
        names[endpoints[index].server].isStale = true
    }

    /// A connection on which the server had answered is lost, or takes no more calls.
    mutating func lost(_ id: Int, now: Instant, using generator: inout some RandomNumberGenerator) {
        guard let index = endpoints.firstIndex(where: { $0.id == id }) else { return }
        endpoints[index].lost(now: now, using: &generator)
        names[endpoints[index].server].isStale = true
        // From now on the order of the list counts again.
        if !hasReady { for other in endpoints.indices { endpoints[other].forgetPause(before: now) } }
    }
}

extension Endpoint {
    /// When the endpoint failed last. The distant past: nothing is known against it.
    fileprivate var failedAt: Instant {
        if case .pausing(let pause) = state { pause.since } else { Instant(nanoseconds: .min) }
    }

    /// Forgets a pause that is over. The back-off keeps its length.
    fileprivate mutating func forgetPause(before now: Instant) {
        if case .pausing(let pause) = state, pause.until <= now { state = .idle }
    }

    /// True if the endpoint was left, and may be tried again at `now`. Nil: at any time.
    fileprivate func isLeft(before now: Instant?) -> Bool {
        guard case .left(let until) = state else { return false }
        return now.map { until <= $0 } ?? true
    }
}
