public import Base
public import Reactor
import Synchronization

/// All connections of the server: accepts them, bounds their number (`ConnectionPlaces`), and ends them in good order.
public final class Server: Sendable, ConnectionOwner {
    private static let visitedPerTurn = 64

    struct State {
        var places: ConnectionPlaces
        /// The number of connections that have got a place and are not among `connections` yet.
        var enteringCount = 0
        /// All open connections, including those that lost their place, until they are closed.
        var connections: [UInt64: Connection] = [:]
        /// The listeners that are paused until connections that lost their place are closed.
        var waitingListeners: [Listener] = []
        var handshakes: HandshakePlaces
        /// The TLS of the ports, for /metrics.
        var tls: ServerTLS?
        var stop = Stop.none
        /// For warnings about connections of no known protocol.
        var refusalWarnings = LogThrottle()
        /// Succeeds when the last connection of a stopping server is closed.
        var emptied: Promise<Void>?

        var isEmpty: Bool { connections.isEmpty && enteringCount == 0 }
    }

    public let metrics = TransportMetrics()
    let loops: EventLoopGroup
    private let dispatcher: any Dispatcher
    let limits: Limits
    private let log: Log
    private let protocols: ServerProtocols
    let state: Mutex<State>
    public let memory: ConnectionMemory
    private let sharesByLoop: [ObjectIdentifier: LoopShare]
    private let relief: MemoryRelief
    let proxyIntake: ProxyIntake

    /// The first connection has the number after `lastConnectionID`.
    public init(
        loops: EventLoopGroup, dispatcher: any Dispatcher, limits: Limits, log: Log, software: Text,
        lastConnectionID: UInt64 = 0
    ) {
        self.loops = loops
        self.dispatcher = dispatcher
        self.limits = limits
        let sharedLimits = SharedLimits(limits)
        self.log = log
        self.protocols = ServerProtocols(
            limits: sharedLimits, software: software, metrics: metrics, dispatcher: dispatcher)
        self.state = Mutex(
            State(
                places: ConnectionPlaces(limits: limits, after: lastConnectionID),
                handshakes: HandshakePlaces(limits: limits)))
        let memory = ConnectionMemory(limits: limits, loopCount: loops.loops.count)
        self.memory = memory
        let shares = loops.loops.enumerated().map {
            LoopShare(of: $1, number: $0, memory: memory, limits: sharedLimits)
        }
        self.sharesByLoop = Dictionary(uniqueKeysWithValues: shares.map { (ObjectIdentifier($0.loop), $0) })
        self.relief = MemoryRelief(memory: memory, shares: shares)
        self.proxyIntake = ProxyIntake(on: loops.loops[0], limits: limits, log: log)
        memory.onExhausted = { [weak relief] in relief?.begin() }
        memory.onEbb = { [weak relief] in relief?.giveBackSoon() }
    }

    /// Opens a port; connections are served from `Listener.start()` on. Without `tls`, all of them are in clear. `mode`
    /// says who may connect to a Unix domain socket. Connections from `proxies` begin with a `ProxyHeader`.
    public func listen(
        _ address: SocketAddress, tls: ServerTLS? = nil, mode: UInt32 = 0o600, proxies: [IPNetwork] = []
    ) throws(ListenError) -> Listener {
        if let tls { state.withLock { $0.tls = tls } }
        return try Listener(
            address, mode: mode, on: loops.loops[0], log: log, mayAccept: { [self] in mayAccept($0) },
            accepted: { [self] descriptor in accept(descriptor, tls, proxies) })
    }

    /// Called on the loop of the listeners.
    private func accept(_ descriptor: Int32, _ tls: ServerTLS?, _ proxies: [IPNetwork]) {
        let (socket, peer, acceptedAt) = (Socket(owning: descriptor), Peer(of: descriptor), Instant.now)
        guard let address = peer.ipAddress, proxies.contains(where: { $0.contains(address) }) else {
            return serve(socket, from: peer, tls, acceptedAt)
        }
        proxyIntake.read(socket, from: peer) { [self] in serve(socket, from: $0, tls, acceptedAt) }
    }

    private func serve(_ socket: Socket, from peer: Peer, _ tls: ServerTLS?, _ acceptedAt: Instant) {
        if let tls {
            adopt(PortStream(socket, from: peer, tls: tls), from: peer, acceptedAt: acceptedAt)
        } else {
            adopt(socket, from: peer, acceptedAt: acceptedAt)
        }
    }

    /// Connections of proxies that were closed because of their header.
    public var proxyHeadersRefused: Counter { proxyIntake.refused }

    /// The TLS of the last port that was opened with TLS.
    public var tls: ServerTLS? { state.withLock { $0.tls } }

    /// Whether the listener may accept now.
    ///
    /// Connections that lost their place hold a descriptor until their loop has closed them, and descriptors are as
    /// scarce as places. While many connections are closing, new ones wait in the kernel's queue. `closed` resumes the
    /// listener.
    private func mayAccept(_ listener: Listener) -> Bool {
        state.withLock { state in
            if hasRoom(state) { return true }
            state.waitingListeners.append(listener)
            return false
        }
    }

    private func hasRoom(_ state: borrowing State) -> Bool {
        state.connections.count - state.places.count < ConnectionPlaces.leavingMax(limits)
    }

    /// Serves a connected, non-blocking descriptor, or closes it at once if a limit or the drain forbids it.
    public func adopt(_ descriptor: Int32, tls: ServerTLS? = nil) {
        serve(Socket(owning: descriptor), from: Peer(of: descriptor), tls, .now)
    }

    func adopt(_ stream: sending any ByteStream, from peer: Peer? = nil, acceptedAt: Instant = .now) {
        metrics.connectionsAccepted.add()
        let peer = peer ?? Peer(of: stream.descriptor)
        let peers = peer.group
        let (admission, displaced) = state.withLock { state -> (ConnectionPlaces.Admission, [Connection]) in
            guard state.stop == .none else { return (.refused, []) }
            let admission = state.places.admit(from: peers)
            guard case .admitted(_, let ids) = admission else { return (admission, []) }
            state.enteringCount += 1
            return (admission, ids.compactMap { state.connections[$0] })
        }
        displace(displaced)
        guard case .admitted(let id, _) = admission else {
            metrics.connectionsRefused.add()
            var stream = stream
            stream.close()
            return
        }
        let loop = loops.next()
        // Proof: `init` makes a share for each loop of the group, and `next` returns one of these.
        guard let share = sharesByLoop[ObjectIdentifier(loop)] else { preconditionFailure("a loop of another group") }
        let connection = Connection(
            owning: stream, from: peer, acceptedAt: acceptedAt, speaking: protocols, id: id, on: loop,
            dispatcher: dispatcher, metrics: metrics, share: share, owner: self)
        enter(connection)
    }

    /// Starts a connection that has a place. If the server has begun to stop since it gave the place, the connection is
    /// told what the others were told.
    private func enter(_ connection: Connection) {
        let stop = state.withLock { state in
            state.enteringCount -= 1
            state.connections[connection.id] = connection
            return state.stop
        }
        metrics.connectionsOpen.add(1)
        connection.loop.run {
            connection.assumeIsolated {
                $0.start()
                stop.tell($0)
            }
        }
    }

    /// Runs `body` for each connection, on its loop; a few of each loop at a time, so that calls are served between
    /// them. Returns when it has run for all, or when the task is cancelled.
    public func visitConnections(_ body: @escaping @Sendable (isolated Connection) -> Void) async {
        let connections = state.withLock { Array($0.connections.values) }
        for ended in beginVisits(of: connections, body) { try? await ended.cancellableValue() }
    }

    /// A promise for each loop, which succeeds when `body` has run for all its connections.
    func beginVisits(
        of connections: [Connection], _ body: @escaping @Sendable (isolated Connection) -> Void
    ) -> [Promise<Void>] {
        let byLoop = Dictionary(grouping: connections) { ObjectIdentifier($0.loop) }
        return byLoop.values.map { connections in
            let ended = Promise<Void>()
            Self.visit(connections[...], body, ended)
            return ended
        }
    }

    private static func visit(
        _ connections: ArraySlice<Connection>, _ body: @escaping @Sendable (isolated Connection) -> Void,
        _ ended: Promise<Void>
    ) {
        guard let loop = connections.first?.loop else { return ended.succeed(()) }
        loop.run {
            for connection in connections.prefix(visitedPerTurn) { connection.assumeIsolated { body($0) } }
            visit(connections.dropFirst(visitedPerTurn), body, ended)
        }
    }

    public func authenticated(_ connection: Connection) {
        state.withLock { $0.places.authenticated(connection.id) }
    }

    public func lostCredential(_ connection: Connection) {
        let displaced = state.withLock { state in
            state.places.lostCredential(connection.id).compactMap { state.connections[$0] }
        }
        displace(displaced)
    }

    public func refused(_ connection: Connection, firstByte: UInt8) {
        metrics.connectionsUnknown.add()
        guard state.withLock({ $0.refusalWarnings.admit(at: .now) }) else { return }
        if firstByte == ProxyHeader.firstByte { return log.warning(ProxyHeader.strangerWarning, [:]) }
        log.warning(
            "a connection began with a byte of no protocol spoken here and was closed",
            ["peer": .text(connection.peerAddress.string), "byte": .integer(Int64(firstByte))])
    }

    private func displace(_ connections: [Connection]) {
        for connection in connections {
            metrics.connectionsDisplaced.add()
            connection.loop.run { connection.assumeIsolated { $0.makeRoom() } }
        }
    }

    public func handshakeBegan(_ connection: Connection) {
        let displaced = state.withLock { state in
            state.handshakes.began(connection.id, from: connection.peers).flatMap { state.connections[$0] }
        }
        guard let displaced else { return }
        metrics.handshakesDisplaced.add()
        displaced.loop.run { displaced.assumeIsolated { $0.closeNow() } }
    }

    public func handshakeEnded(_ connection: Connection) { state.withLock { $0.handshakes.ended(connection.id) } }

    public var handshakeCount: Int { state.withLock { $0.handshakes.count } }

    public func closed(_ connection: Connection) {
        connection.loop.connections.add(-1)
        metrics.connectionsOpen.add(-1)
        let (emptied, listeners) = state.withLock { state -> (Promise<Void>?, [Listener]) in
            state.places.remove(connection.id)
            state.connections[connection.id] = nil
            var listeners: [Listener] = []
            if hasRoom(state) { swap(&listeners, &state.waitingListeners) }
            guard state.stop != .none, state.isEmpty else { return (nil, listeners) }
            return (state.emptied.take(), listeners)
        }
        for listener in listeners { listener.resume() }
        emptied?.succeed(())
    }

    /// Connections that have shown no credential.
    public var unauthenticatedCount: Int { state.withLock { $0.places.unauthenticatedCount } }
}
