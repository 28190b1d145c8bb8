public import Base
public import Reactor
import Wire

// One client connection: the bytes of its stream, the session of its protocol, the calls in flight on it.
//
// A connection runs on its event loop: the stream's events enter by `assumeIsolated`, and every task that waits resumes
// on the same thread. The `ProtocolSession` decides; this actor performs: Connection+Input reads, Connection+Output
// writes, Connection+Calls runs what takes longer than one turn, Connection+Timers ends what takes too long.

/// A client connection. Either side, a time limit or the server's drain closes it.
public actor Connection {
    enum Phase {
        /// Next: `closing`, `closed`.
        case open
        /// The peer sends no more; calls in flight are still answered. Next: `closing`, `closed`.
        case peerClosed
        /// The connection takes in nothing more and sends the rest of its output. Next: `lingering`, `closed`.
        case closing
        /// Everything is sent. The peer may close first, so that it reads our last frames. Next: `closed`.
        case lingering
        case closed

        /// Whether requests that have come are still begun, and calls are answered.
        @inline(__always)
        var isServing: Bool { self == .open || self == .peerClosed }
    }

    public nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    /// The connection's number, counted over all connections of the server. Request ids name it.
    public nonisolated let id: UInt64
    public nonisolated let peerAddress: Text
    /// The peer's group, by which places and handshakes are bounded.
    nonisolated let peers: Text
    /// The dispatcher's own data about this connection.
    public let context: AnyObject
    /// True while a credential that was shown on this connection is valid. The connection then has larger limits and
    /// longer deadlines.
    @exclusivity(unchecked) public private(set) var isAuthenticated = false
    /// When the connection was last without a valid credential: its start, or the loss of its credential.
    var unauthenticatedSince: Instant

    nonisolated let dispatcher: any Dispatcher
    nonisolated var limits: Limits { share.limits.values }
    nonisolated let metrics: TransportMetrics
    nonisolated let owner: any ConnectionOwner

    // About `@exclusivity(unchecked)`: the checks are a tenth of the instructions of a call. Proof for the fields that
    // are read or written in one step: only this actor's thread touches them, so that no two accesses overlap. Proof
    // for `input` and `output`, which a session works on: neither the session nor the code that writes a response into
    // the output knows the connection. Proof for `calls`, whose entries wake tasks: such a task runs in a later job of
    // the loop. The tests run with the checks of these three.

    var byteStream: any ByteStream
    /// Chosen by the first byte that comes.
    @exclusivity(unchecked) var session: any ProtocolSession = OpeningSession.shared
    let protocols: any ProtocolChoice
    /// How calls come in on this connection.
    @exclusivity(unchecked) public internal(set) var form = CallForm()
    @exclusivity(unchecked) var phase = Phase.open
    /// The stage of `byteStream` when it was last read.
    @exclusivity(unchecked) var stage = ByteStreamStage.open
    /// The memory that `byteStream` held after the last read, and since when it has held this without giving bytes.
    @exclusivity(unchecked) var streamByteCount = 0
    var streamHeldSince: Instant?
    /// True while the stream cannot be read before it has sent something.
    @exclusivity(unchecked) var isReadBlockedByWrite = false
    #if !DEBUG
        @exclusivity(unchecked)
    #endif
    /// The beginning of a frame whose rest has not come yet, or whole frames while the connection `isBehind`; empty
    /// otherwise.
    var input = ByteBuffer()
    /// True while the connection waits for a turn to read (`LoopShare.waitToRead`).
    @exclusivity(unchecked) var isReadDue = false
    @exclusivity(unchecked) var pauses = ReadingPauses()
    /// True while `input` may have frames that wait for this turn.
    @exclusivity(unchecked) var isBehind = false
    /// The line in which the connection waits to be read: the line of its first caller, and until then that of its
    /// address.
    private(set) var line: Text
    /// The data that all connections of the loop share: a read buffer, and the count of the memory they hold.
    let share: LoopShare
    /// Every frame reads these two, so that reading them counts no references. `share` keeps the memory's object alive.
    let bounds: WaitingBounds
    let borrowedMemory: Unmanaged<ConnectionMemory>
    #if !DEBUG
        @exclusivity(unchecked)
    #endif
    var output = OutputQueue()
    @exclusivity(unchecked) var isDirty = false
    /// When reading was paused. Nil while the connection reads.
    @exclusivity(unchecked) var readingPausedSince: Instant?
    /// True if reading was paused because there was no memory for the rest of a frame, or for a further request.
    var awaitsMemory = false
    /// True while a handler may look at `input`.
    @exclusivity(unchecked) var isDecoding = false
    /// True while `input` is the loop's buffer.
    @exclusivity(unchecked) var isReadingIntoLoopBuffer = false
    #if !DEBUG
        @exclusivity(unchecked)
    #endif
    var calls: [UInt32: ActiveCall] = [:]
    /// The bytes in the inboxes of all calls.
    @exclusivity(unchecked) var inboxByteCount = 0
    /// The bytes of the requests and messages that the calls in flight hold.
    @exclusivity(unchecked) var requestByteCount = 0
    /// The part of `requestByteCount` that streams hold while they wait for room for their messages.
    var sendingByteCount = 0
    /// The bytes of the messages that handlers of streams work on.
    @exclusivity(unchecked) var takenByteCount = 0
    /// The calls that wait to make a page, and whether one of them stands in the loop's line.
    @exclusivity(unchecked) var pagesWaiting = 0
    var isInPageLine = false
    /// The calls that wait for `workTurn`.
    var workTurns = TurnQueue()
    /// The bytes of this connection that `share` has counted; see `account`.
    @exclusivity(unchecked) var countedByteCount = 0
    var isHolder = false
    /// The memory of the connection's line, and the part of it that is this connection's. Nil until the connection is
    /// a holder, or memory is short.
    @exclusivity(unchecked) var lineMemory: LineMemory?
    @exclusivity(unchecked) var lineByteCount = 0
    /// True if a call may be waiting to send. Sent output wakes such calls.
    var mayHaveSenders = false
    var watch: FileWatch?
    var timer: Timer?
    let acceptedAt: Instant
    var lastReadAt: Instant
    @exclusivity(unchecked) var keepalive: Keepalive
    var lastWriteProgressAt: Instant
    var hasSeenFirstByte = false
    var lingersUntil = Instant.distantFuture

    /// Takes over `byteStream`, which is connected and non-blocking.
    init(
        owning byteStream: any ByteStream, from peer: Peer, acceptedAt: Instant,
        speaking protocols: any ProtocolChoice, id: UInt64, on loop: EventLoop, dispatcher: any Dispatcher,
        metrics: TransportMetrics, share: LoopShare, owner: any ConnectionOwner
    ) {
        self.loop = loop
        self.id = id
        self.peerAddress = peer.address
        self.peers = peer.group
        self.line = Self.line(ofStrangersFrom: peer.group)
        self.byteStream = byteStream
        self.stage = byteStream.stage
        self.protocols = protocols
        self.dispatcher = dispatcher
        self.context = dispatcher.makeConnectionContext()
        self.metrics = metrics
        self.share = share
        self.bounds = WaitingBounds(share.limits.values)
        self.borrowedMemory = .passUnretained(share.memory)
        self.owner = owner
        let now = Instant.now
        self.acceptedAt = acceptedAt
        self.unauthenticatedSince = now
        self.lastReadAt = now
        self.lastWriteProgressAt = now
        self.keepalive = Keepalive(heardAt: now)
    }

    /// Begins to read, unless the connection was closed before. On the loop.
    public func start() {
        guard phase != .closed else { return }
        watch = FileWatch(on: loop, fileDescriptor: byteStream.descriptor, handler: self)
        watch?.setReading(true)
        timer = Timer(on: loop) { [weak self] in
            self?.assumeIsolated { $0.timerFired() }
        }
        armTimer(now: acceptedAt)
    }

    /// The line of connections from an address that showed no credential.
    private static func line(ofStrangersFrom peers: Text) -> Text { Text("(stranger) \(peers)") }

    /// The memory that the connection holds counts for the new line as soon as it changes.
    private func changeLine(to line: Text) {
        leaveLine()
        self.line = line
    }

    /// From the dispatcher: the caller presented a valid credential. `line` is that of its tenant.
    public func authenticated(line: Text) {
        guard !isAuthenticated else { return }
        isAuthenticated = true
        changeLine(to: line)
        session.authenticated(output: &output)
        if !output.isEmpty { markDirty() }
        owner.authenticated(self)
    }

    /// From the dispatcher: the credential is no longer valid. The connection then has as much time as a new connection
    /// to show another credential.
    public func lostCredential() {
        guard isAuthenticated, phase != .closed else { return }
        isAuthenticated = false
        changeLine(to: Self.line(ofStrangersFrom: peers))
        session.lostCredential(output: &output)
        if !output.isEmpty { markDirty() }
        unauthenticatedSince = .now
        owner.lostCredential(self)
        armTimer(now: unauthenticatedSince)
    }

    /// Ends a connection without a credential. Its calls are answered with UNAVAILABLE, so that their callers connect
    /// again.
    func endWithoutCredential(_ reason: CloseReason) {
        for stream in Array(calls.keys) { end(stream: stream, Self.credentialMissing) }
        endSession(reason)
    }

    /// Ends the connection because another one got its place. Sends what the socket takes at once, then closes.
    func makeRoom() {
        guard phase != .closed else { return }
        if phase.isServing { endWithoutCredential(.displaced) }
        guard phase != .closed else { return }
        flushAtEndOfTurn()
        closeNow()
    }

    /// Begins a graceful stop: tells the client to go elsewhere, and sends a PING.
    ///
    /// The client's answer to the PING comes after everything it sent before it knew. The second half begins with that
    /// answer, so that it need not wait for the slowest client.
    public func beginDrain() {
        guard phase != .closed else { return }
        perform(session.beginDrain(output: &output))
    }

    /// Ends a graceful stop: refuses new calls, and closes the connection after the last call in flight.
    ///
    /// Streams that only the server ends (watches) are ended now, because nobody else would end them.
    public func finishDrain() {
        guard phase != .closed else { return }
        for (stream, call) in calls where call.kind == .remoteClosed { end(stream: stream, Self.stopping) }
        perform(session.finishDrain(output: &output))
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
        if stage == .handshake { owner.handshakeEnded(self) }
        byteStream.close()
        releaseMemory()
        dispatcher.closed(self)
        owner.closed(self)
    }
}

/// The owner of all connections, which counts them. Called on the connection's loop.
public protocol ConnectionOwner: AnyObject, Sendable {
    func authenticated(_ connection: Connection)
    func lostCredential(_ connection: Connection)
    /// A TLS handshake began. It costs memory, and perhaps work, for an unknown peer.
    func handshakeBegan(_ connection: Connection)
    func handshakeEnded(_ connection: Connection)
    /// The connection's first byte belongs to no protocol; it is closed.
    func refused(_ connection: Connection, firstByte: UInt8)
    /// Called once.
    func closed(_ connection: Connection)
}

extension Connection: SocketEvents, EndOfTurn {
    public nonisolated func socketIsReadable() { assumeIsolated { $0.readable() } }
    public nonisolated func socketIsWritable() { assumeIsolated { $0.writable() } }
    public nonisolated func turnEnded() { assumeIsolated { $0.flushAtEndOfTurn() } }
}
