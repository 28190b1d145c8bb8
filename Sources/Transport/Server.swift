public import Base
public import Reactor
import Synchronization

/// All connections of the server: accepts them, bounds their number, and ends them in good order.
public final class Server: Sendable {
    private struct State {
        var connections: [UInt64: Connection] = [:]
        var connectionsPerAddress: [Text: Int] = [:]
        var nextID: UInt64 = 1
        var isDraining = false
        var emptied: Promise<Void>?
    }

    public let metrics = TransportMetrics()
    private let loops: EventLoopGroup
    private let dispatcher: any Dispatcher
    private let limits: Limits
    private let log: Log
    private let software: Text
    private let state = Mutex(State())
    private let scratches: [ObjectIdentifier: ReadScratch]

    public init(loops: EventLoopGroup, dispatcher: any Dispatcher, limits: Limits, log: Log, software: Text) {
        self.loops = loops
        self.dispatcher = dispatcher
        self.limits = limits
        self.log = log
        self.software = software
        self.scratches = Dictionary(
            uniqueKeysWithValues: loops.loops.map { (ObjectIdentifier($0), ReadScratch()) })
    }

    /// Opens a port; connections are served from `Listener.start()` on.
    public func listen(_ address: SocketAddress) throws(ListenError) -> Listener {
        try Listener(address, on: loops.loops[0], log: log) { [self] descriptor in adopt(descriptor) }
    }

    /// Serves a connected, non-blocking descriptor; closes it at once where a limit or the drain forbids it.
    public func adopt(_ descriptor: Int32) {
        metrics.connectionsAccepted.add()
        let address = Socket.peerAddress(descriptor)
        let id: UInt64? = state.withLock { state in
            let count = state.connectionsPerAddress[address, default: 0]
            guard !state.isDraining, state.connections.count < limits.connectionsMax,
                count < limits.connectionsPerAddressMax
            else { return nil }
            state.connectionsPerAddress[address] = count + 1
            state.nextID += 1
            return state.nextID - 1
        }
        guard let id else {
            metrics.connectionsRefused.add()
            Socket(owning: descriptor).close()
            return
        }
        let loop = loops.next()
        let connection = Connection(
            owning: descriptor, id: id, on: loop, dispatcher: dispatcher, limits: limits, metrics: metrics,
            scratch: scratches[ObjectIdentifier(loop)] ?? ReadScratch(), software: software,
            closed: { [self] in removed($0) })
        state.withLock { $0.connections[id] = connection }
        metrics.connectionsOpen.add(1)
        loop.run { connection.assumeIsolated { $0.start() } }
    }

    private func removed(_ connection: Connection) {
        connection.loop.connections.add(-1)
        metrics.connectionsOpen.add(-1)
        let emptied: Promise<Void>? = state.withLock { state in
            state.connections[connection.id] = nil
            let count = state.connectionsPerAddress[connection.peerAddress, default: 1] - 1
            state.connectionsPerAddress[connection.peerAddress] = count > 0 ? count : nil
            guard state.isDraining, state.connections.isEmpty else { return nil }
            return state.emptied.take()
        }
        emptied?.succeed(())
    }

    /// Tells every client to go elsewhere, lets calls in flight come to their end, and returns when all connections are
    /// closed or `Limits.drainTimeout` is over.
    public func drain() async {
        let emptied = Promise<Void>()
        let connections = state.withLock { state in
            state.isDraining = true
            if state.connections.isEmpty { emptied.succeed(()) } else { state.emptied = emptied }
            return Array(state.connections.values)
        }
        for connection in connections { await connection.beginDrain() }
        // What clients sent before they knew is still on its way. Who answers PING tells when it has come; for the
        // others a moment, then nothing new is taken.
        await pause(min(.milliseconds(200), limits.drainTimeout))
        for connection in connections { await connection.finishDrain() }
        loops.loops[0].callOnce(after: limits.drainTimeout) { emptied.succeed(()) }
        try? await emptied.value()
        await closeAll()
    }

    /// Ends every connection, whatever is in flight.
    public func closeAll() async {
        let connections = state.withLock { state in
            state.isDraining = true
            return Array(state.connections.values)
        }
        for connection in connections { await connection.closeNow() }
    }

    private func pause(_ duration: Duration) async {
        let passed = Promise<Void>()
        loops.loops[0].callOnce(after: duration) { passed.succeed(()) }
        try? await passed.value()
    }
}

extension EventLoop {
    /// Calls `body` on the loop once, after `delay`; from any thread.
    func callOnce(after delay: Duration, _ body: @escaping @Sendable () -> Void) {
        run { [self] in
            let holder = TimerHolder()
            holder.timer = Timer(on: self) {
                body()
                holder.timer = nil
            }
            holder.timer?.arm(after: delay)
        }
    }
}

/// Keeps a one-shot timer alive until it fired.
private final class TimerHolder {
    var timer: Timer?
}
