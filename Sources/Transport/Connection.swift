public import Base
public import Reactor
import Wire

// One client connection: the bytes of its socket, its protocol state, the calls in flight on it.
//
// Runs on its event loop: the socket's events enter by `assumeIsolated`, whatever waits for something comes back to
// the same thread. `ConnectionState` decides; this actor performs: Connection+Input reads and decodes,
// Connection+Output queues and writes, Connection+Calls runs what takes longer than one turn, Connection+Timers ends
// what takes too long.

/// A client connection. Closed by either side, by a time limit, or by the server's drain.
public actor Connection {
    enum Phase {
        /// Next: `closing`, `closed`.
        case open
        /// The peer sends no more; what is in flight is answered. Next: `closing`, `closed`.
        case peerClosed
        /// Nothing is taken in any more, the rest of the output is sent. Next: `lingering`, `closed`.
        case closing
        /// All is sent and said; the peer may close first, so that it reads our last words. Next: `closed`.
        case lingering
        case closed
    }

    public nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    /// Counts up over all connections of the server; in logs and request ids.
    public nonisolated let id: UInt64
    public nonisolated let peerAddress: Text
    /// What the dispatcher keeps for this connection.
    public let context: AnyObject
    /// A valid credential was shown on this connection: larger limits, longer patience.
    public private(set) var isAuthenticated = false
    /// Since when it is not.
    var unauthenticatedSince: Instant

    nonisolated let dispatcher: any Dispatcher
    nonisolated let limits: Limits
    nonisolated let metrics: TransportMetrics
    nonisolated let owner: any ConnectionOwner

    let socket: Socket
    var phase = Phase.open
    var state: ConnectionState
    var decoder: FrameDecoder
    /// The beginning of a frame whose rest has not come yet; empty otherwise.
    var input = ByteBuffer()
    /// What the connections of the loop have in common: a buffer to read into, the count of what they hold.
    let share: LoopShare
    var output = ByteBuffer()
    /// What came while the socket took nothing: behind `output`, so that a PING's answer can go between the two.
    var backlog = ByteBuffer()
    var isWriteBlocked = false
    var isDirty = false
    /// Since when nothing is read; nil while something is.
    var readingPausedSince: Instant?
    /// A handler may be looking at `input`.
    var isDecoding = false
    /// `input` is the loop's buffer for the moment.
    var isReadingIntoLoopBuffer = false
    var calls: [UInt32: ActiveCall] = [:]
    /// Of all calls' inboxes.
    var inboxByteCount = 0
    /// Of the requests and messages that the calls in flight hold.
    var requestByteCount = 0
    /// Calls that wait to make a page, and whether one of them stands in the loop's line.
    var pagesWaiting = 0
    var isInPageLine = false
    /// What this connection counts for in `share`; see `account`.
    var countedByteCount = 0
    var isHolder = false
    /// Some call may be waiting to send: looked for when output has left.
    var mayHaveSenders = false
    var watch: FileWatch?
    var timer: Timer?
    let acceptedAt: Instant
    var lastReadAt: Instant
    var lastWriteProgressAt: Instant
    var hasSeenFirstByte = false
    var hasSeenRequest = false
    var lingersUntil = Instant.distantFuture

    /// Takes over `descriptor`, which is connected and non-blocking.
    public init(
        owning descriptor: Int32, id: UInt64, on loop: EventLoop, dispatcher: any Dispatcher, limits: Limits,
        metrics: TransportMetrics, share: LoopShare, software: Text, owner: any ConnectionOwner
    ) {
        self.loop = loop
        self.id = id
        self.peerAddress = Socket.peerAddress(descriptor)
        self.socket = Socket(owning: descriptor)
        self.dispatcher = dispatcher
        self.context = dispatcher.makeConnectionContext()
        self.limits = limits
        self.metrics = metrics
        self.share = share
        self.owner = owner
        self.state = ConnectionState(limits: limits, software: software)
        self.decoder = FrameDecoder(payloadHardMax: limits.framePayloadHardMax)
        let now = Instant.now
        self.acceptedAt = now
        self.unauthenticatedSince = now
        self.lastReadAt = now
        self.lastWriteProgressAt = now
    }

    /// Begins to read. On the loop.
    public func start() {
        watch = FileWatch(on: loop, fileDescriptor: socket.descriptor, handler: self)
        watch?.setReading(true)
        timer = Timer(on: loop) { [weak self] in
            self?.assumeIsolated { $0.timerFired() }
        }
        armTimer(now: acceptedAt)
    }

    /// From the dispatcher: the caller presented a valid credential.
    public func authenticated() {
        guard !isAuthenticated else { return }
        isAuthenticated = true
        state.authenticated()
        owner.authenticated(self)
    }

    /// From the dispatcher: the credential is no longer valid. The connection has as long as a new one to show another.
    public func lostCredential() {
        guard isAuthenticated, phase != .closed else { return }
        isAuthenticated = false
        state.lostCredential()
        unauthenticatedSince = .now
        owner.lostCredential(self)
        armTimer(now: unauthenticatedSince)
    }

    /// Ends a connection without a credential. Its calls are answered with UNAVAILABLE, so that their callers connect
    /// again.
    func endWithoutCredential(_ reason: CloseReason) {
        for stream in Array(calls.keys) { end(stream: stream, Self.credentialMissing) }
        perform(state.violated(reason))
    }

    /// Another connection has this one's place: what can be said is said at once, then it is closed.
    func makeRoom() {
        guard phase != .closed else { return }
        if phase == .open || phase == .peerClosed { endWithoutCredential(.displaced) }
        guard phase != .closed else { return }
        flushAtEndOfTurn()
        closeNow()
    }

    /// First half of a graceful stop: the client is told to go elsewhere. Its answer to the PING behind that comes
    /// after all it sent before it knew: the second half begins then, without waiting for the slowest client.
    public func beginDrain() {
        perform(state.beginDrain())
        guard phase == .open, let ping = state.ping(1) else { return }
        queue { ping.append(to: &$0) }
    }

    /// Second half: new calls are refused, the connection closes behind the last one in flight.
    ///
    /// Streams that only the server ends (watches) are ended now: nobody waits for their end.
    public func finishDrain() {
        for (stream, call) in calls where call.kind == .remoteClosed { end(stream: stream, Self.stopping) }
        perform(state.finishDrain())
    }

    /// Ends the connection now, whatever is in flight.
    public func closeNow() {
        guard phase != .closed else { return }
        phase = .closed
        cancelAllCalls()
        watch?.cancel()
        watch = nil
        timer?.cancel()
        timer = nil
        socket.close()
        releaseMemory()
        dispatcher.closed(self)
        owner.closed(self)
    }
}

/// Who counts the connections. Called on the connection's loop.
public protocol ConnectionOwner: AnyObject, Sendable {
    func authenticated(_ connection: Connection)
    func lostCredential(_ connection: Connection)
    /// Called once.
    func closed(_ connection: Connection)
}

extension Connection: SocketEvents, EndOfTurn {
    public nonisolated func socketIsReadable() { assumeIsolated { $0.readable() } }
    public nonisolated func socketIsWritable() { assumeIsolated { $0.writable() } }
    public nonisolated func turnEnded() { assumeIsolated { $0.flushAtEndOfTurn() } }
}
