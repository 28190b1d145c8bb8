import Base
import Wire

// How the channel connects: it carries out the load balancer's actions, and reports their results to it.

extension ChannelCore {
    /// Begins every connection that is due: calls wait for it, or round robin keeps its connections.
    func beginConnecting(now: Instant) {
        guard !waiting.isEmpty || keepsConnected else { return }
        while let action = balancer.next(now: now) { begin(action, now: now) }
    }

    /// Round robin keeps its connections even while no call needs them. When none of them is left, it does not
    /// reconnect before the next call: a process that makes no calls sleeps.
    var keepsConnected: Bool { balancer.policy == .roundRobin && balancer.hasReady }

    private func begin(_ action: LoadBalancer.Action, now: Instant) {
        switch action {
        case .lookUp(let server):
            let address = balancer.servers[server]
            prepare(action, now: now) {
                do throws(Failure) { return .addresses(.success(try address.resolve())) } catch {
                    return .addresses(.failure(error))
                }
            }
        case .connect(let id):
            guard let tls = options.tls, let endpoint = balancer.endpoint(id) else { return connect(id, nil, now: now) }
            let host = balancer.servers[endpoint.server].host
            prepare(action, now: now) {
                do throws(Failure) {
                    let name = tls.serverName.isEmpty ? host : tls.serverName
                    return .tls(.success(ClientTLS(context: try tls.makeContext(), serverName: name)))
                } catch {
                    return .tls(.failure(error))
                }
            }
        }
    }

    private func prepare(
        _ action: LoadBalancer.Action, now: Instant, _ work: @escaping @Sendable () -> Preparation.Result
    ) {
        preparationCount += 1
        let id = preparationCount
        let mailbox = mailbox
        preparations.append(
            Preparation(id: id, action: action, until: now.advanced(by: options.connectTimeout)))
        let isTaken = PreparationWorkers.shared.run { mailbox.post(.prepared(id, work())) }
        if isTaken { return }
        giveUp(id, .connectionFailed("Too many names are looked up already, or the system starts no thread."), now: now)
    }

    /// A worker is done. A result that comes too late is dropped.
    func prepared(_ id: Int, _ result: Preparation.Result, now: Instant) {
        guard let index = preparations.firstIndex(where: { $0.id == id }) else { return }
        switch (preparations.remove(at: index).action, result) {
        case (.lookUp(let server), .addresses(let addresses)): lookedUp(server, addresses, now: now)
        case (.connect(let endpoint), .tls(.success(let tls))): connect(endpoint, tls, now: now)
        case (.connect(let endpoint), .tls(.failure(let failure))):
            balancer.failed(endpoint, failure, now: now, using: &generator)
        case (.lookUp, .tls), (.connect, .addresses): break
        }
    }

    /// Stops waiting for workers that take too long.
    func giveUpOverdue(now: Instant) {
        for preparation in preparations where preparation.until <= now {
            giveUp(preparation.id, .connectionFailed("No answer within \(options.connectTimeout)."), now: now)
        }
    }

    private func giveUp(_ id: Int, _ failure: Failure, now: Instant) {
        guard let index = preparations.firstIndex(where: { $0.id == id }) else { return }
        switch preparations.remove(at: index).action {
        case .lookUp(let server): lookedUp(server, .failure(failure), now: now)
        case .connect(let endpoint): balancer.failed(endpoint, failure, now: now, using: &generator)
        }
    }

    private func lookedUp(_ server: Int, _ result: Result<[ResolvedAddress], Failure>, now: Instant) {
        let gone = balancer.lookedUp(server, result, now: now, using: &generator)
        for connection in connections.taking where gone.contains(connection.endpoint) { connection.isLeaving = true }
    }

    private func connect(_ id: Int, _ tls: ClientTLS?, now: Instant) {
        guard let address = balancer.endpoint(id)?.address else { return }
        do throws(Failure) {
            let socket = try openSocket(address)
            connections.add(
                try ClientConnection(
                    to: id, over: socket, tls: tls, authorization: authorization, options: options, journal: journal,
                    now: now))
        } catch {
            balancer.failed(id, error, now: now, using: &generator)
        }
    }

    private func openSocket(_ address: ResolvedAddress) throws(Failure) -> ClientSocket {
        if let transport = mailbox.transport { return ClientSocket(owning: try transport.connect()) }
        do throws(SystemError) { return try ClientSocket(connectingTo: address) } catch {
            throw .connectionFailed("\(error)")
        }
    }

    /// Begins one more connection for streams, unless one is on its way or the last one failed a short time ago.
    func beginFurther(now: Instant) {
        switch balancer.further(now: now) {
        case .connect(let id):
            guard !preparations.contains(where: { $0.action == .connect(endpoint: id) }) else { return }
            begin(.connect(endpoint: id), now: now)
        case .wait(let server, let pause):
            nextFurther = pause.until
            let retryAfter = Duration.nanoseconds(pause.until.nanoseconds(since: now))
            failImpatient(balancer.describe(pause.failure, server: server, retryAfter: retryAfter)) {
                $0.kind != .unary
            }
        case .none: break
        }
    }

    /// Tells the load balancer that a connection was welcomed, or was lost.
    func report(_ connection: ClientConnection, now: Instant) {
        if connection.isWelcomed, connection.standing == .begun {
            connection.standing = .welcomed
            balancer.connected(connection.endpoint)
        }
        let isOver = connection.isLeaving || connection.isEnded
        if connection.standing == .welcomed, isOver {
            connection.standing = .lost
            balancer.lost(connection.endpoint, now: now, using: &generator)
        }
    }

    /// The next time at which connecting has something to do.
    var nextConnecting: Instant {
        var next = preparations.reduce(.distantFuture) { min($0, $1.until) }
        if !waiting.isEmpty { next = min(next, nextFurther) }
        if !waiting.isEmpty || keepsConnected { next = min(next, balancer.nextAttempt()) }
        return next
    }
}
