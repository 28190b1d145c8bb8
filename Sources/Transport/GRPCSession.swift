// gRPC over HTTP/2 on one connection. nghttp2 knows the frames (`HTTP2Engine`), `GRPCStreamState` decides for each
// stream, and this type puts both together. +Requests takes calls in, +Messages takes their messages apart, +Answers
// writes, +Time bounds how long clients keep it waiting.
//
// The bytes of a read are decoded piece by piece, and the results of a piece stand in queues until the connection asks
// for them. Memory is bounded by the windows of the streams, which are opened only as far as calls are taken:
// docs/decisions/0067.

import Base
import HTTP2
import Messages
import Wire

/// The gRPC protocol of one connection.
final class GRPCSession: ProtocolSession, HTTP2Events {
    /// The P of HTTP/2's preface.
    static let firstByte = UInt8(ascii: "P")
    static let (drainPing, probePing): (UInt64, UInt64) = (1, 2)

    /// A task for the connection, in order of arrival. It does not wait for the turn of a call.
    enum Notice {
        case cancel(UInt32)
        case present(GRPCStream, id: UInt32)
        case windowOpened(UInt32)
        case echo
        case probeAnswered
        case close
    }

    /// A stream whose call, or whose messages, wait for their turn. The object may have become another stream
    /// meanwhile.
    struct Waiting {
        let stream: GRPCStream
        let id: UInt32
    }

    let engine = HTTP2Engine(.server)
    private let sharedLimits: SharedLimits
    var limits: Limits { sharedLimits.values }
    let metrics: TransportMetrics
    let methods: any Dispatcher
    var now: Instant

    var name: StaticString { "grpc" }
    var hasSeenRequest = false
    var isAuthenticated = false
    var isClosed = false
    var isRefusing = false

    private var scanner = HTTP2FrameScanner()
    var flood: HTTP2FloodGuard
    private(set) var partialSince: Instant?
    var request = RequestEnvelope.none
    var cancelRate: EventRate
    /// The unpacked bytes of the header block that is coming in.
    var blockFieldsByteCount = 0
    /// The client's violation in the bytes that are being read.
    var violation: CloseReason?
    /// The PING of `beginDrain` was sent and not answered.
    private var awaitsEcho = false

    var streams: [UInt32: GRPCStream] = [:]
    var spareStreams: [GRPCStream] = []
    /// The stream whose headers are coming in; nil for a refused stream and for trailers.
    var headersOf: GRPCStream?
    var notices = EventQueue<Notice>()
    var waiting = EventQueue<Waiting>()
    /// The stream whose headers or message the connection looks at, and the bytes of the message, which still lies at
    /// the front of its stream's input. The stream lives until the connection has used the event, even if its call
    /// ends before.
    var handedOut: (stream: GRPCStream, byteCount: Int)?
    /// The content of a compressed message that the connection looks at.
    var unpacked = ByteBuffer()
    /// True if the last event took the unpacking of a message (up to 4 MiB, also of one that was then refused), or a
    /// piece of the input of which more is there.
    var wasLong = false

    /// Requests whose message has not come whole, the oldest first.
    var incomplete: [GRPCStream] = []
    /// The stream that may send more than its first window for one message, and the streams that wait for this.
    var largeStream: GRPCStream?
    var largeWaiting = EventQueue<Waiting>()

    /// The answer that is being written. The part that the client has no window for moves to its stream.
    var answer = ByteBuffer()
    var answering: GRPCStream?
    var inputByteCount = 0
    /// The memory of the headers of all streams, those that are kept for another one included.
    var headersByteCount = 0
    /// The memory that `spareStreams` keep for messages and answers.
    var spareByteCount = 0
    private(set) var pendingByteCount = 0
    /// The number of answers that are complete but not completely sent.
    var heldAnswers = 0
    var heldProgressAt = Instant.distantFuture
    /// The streams on which clients send as many messages as they like.
    var openStreams = 0
    /// A stream of messages was told to wait for the client's windows.
    var isWindowAwaited = false
    /// `windowOpened(0)` stands among the notices.
    var isRoomNoted = false

    static let sparesMax = 32
    static let spareByteCountMax = 16 * 1024
    /// The bytes that are decoded before the connection looks at the clock: 64 KiB of short frames take ten
    /// milliseconds.
    static let pieceByteCount = 4 * 1024
    /// A stream's objects and its tables in nghttp2.
    private static let streamByteCount = 1_024

    init(limits: SharedLimits, methods: any Dispatcher, metrics: TransportMetrics, now: Instant) {
        self.sharedLimits = limits
        self.methods = methods
        self.metrics = metrics
        self.now = now
        self.flood = HTTP2FloodGuard(limits: limits.values)
        self.cancelRate = EventRate(perSecondMax: limits.values.cancelsPerSecondMax)
        engine.events = self
        submitSettings()
    }

    var heldByteCount: Int {
        inputByteCount + pendingByteCount + headersByteCount + partialBlockByteCount
            + streams.count * Self.streamByteCount
    }

    /// nghttp2 keeps the part of a field that has come, unpacked: its shortest code for a byte has five bits.
    private var partialBlockByteCount: Int { partialSince == nil ? 0 : flood.blockByteCount / 5 * 8 }

    var streamsMax: Int { isAuthenticated ? limits.streamsMax : limits.streamsMaxUnauthenticated }

    var initialWindow: Int { isAuthenticated ? limits.streamWindow : limits.streamWindowUnauthenticated }

    var messageMax: Int { isAuthenticated ? limits.framePayloadMax : limits.framePayloadMaxUnauthenticated }

    var readsWhileFull: Bool { true }

    var hasWaitingCalls: Bool { !waiting.isEmpty }

    var holdsAnswers: Bool { heldAnswers > 0 }

    func next(in input: inout ByteBuffer, output: inout OutputQueue, now: Instant, mayBegin: Bool) -> SessionEvent {
        self.now = now
        wasLong = false
        releaseHandedOut()
        var hasReceived = false
        while true {
            if let event = nextNotice(&output) { return event }
            if mayBegin, let event = nextWaiting(&output) { return event }
            guard notices.isEmpty else { continue }
            if input.isEmpty { return .needMore }
            if hasReceived {
                wasLong = true
                return .none
            }
            receive(&input, &output)
            hasReceived = true
        }
    }

    private func nextNotice(_ output: inout OutputQueue) -> SessionEvent? {
        while let notice = notices.popFirst() {
            switch notice {
            case .cancel(let stream): return .cancel(stream: stream)
            case .windowOpened(let stream):
                if stream == 0 { isRoomNoted = false }
                return .windowOpened(stream: stream)
            case .echo: return .echo
            case .probeAnswered: return .probeAnswered
            case .close: return .close
            case .present(let stream, let id):
                guard stream.id == id, let authorization = stream.headers.authorization else { continue }
                if stream.hasPresented {
                    checkLength(stream)
                    pump(&output)
                } else {
                    // The notice comes again when the connection knows whether the credential is valid.
                    stream.hasPresented = true
                    notices.append(notice)
                    return .present(Text(validating: authorization) ?? .empty)
                }
            }
        }
        return nil
    }

    private func receive(_ input: inout ByteBuffer, _ output: inout OutputQueue) {
        let byteCount = min(input.readableByteCount, Self.pieceByteCount)
        defer { input.consume(byteCount) }
        guard !isClosed else { return }
        let bytes = UnsafeRawBufferPointer(rebasing: input.readable[..<byteCount])
        var offset = 0
        var hasEnded = false
        while let frame = scanner.next(in: bytes, at: &offset) {
            hasEnded = true
            if let reason = flood.admit(frame, now: now) {
                metrics.framesRefused.add()
                return close(reason, &output)
            }
        }
        if scanner.isBetweenFrames && !flood.isInBlock {
            partialSince = nil
        } else if partialSince == nil || (hasEnded && !flood.isInBlock) {
            partialSince = now
        }
        let isHTTP2 = engine.receive(bytes)
        if let violation {
            metrics.framesRefused.add()
            return close(violation, &output)
        }
        pump(&output)
        if !isHTTP2 || engine.isOver {
            // After a GOAWAY of either side and the last stream, the connection is over in good order.
            if !isClosed, !isHTTP2 || !isRefusing { metrics.framesRefused.add() }
            isClosed = true
            notices.append(.close)
        }
    }

    // MARK: The connection

    private func submitSettings() {
        engine.submit(
            HTTP2Settings(
                streamsMax: streamsMax, initialWindow: initialWindow, headerListByteCountMax: limits.headerListMax))
    }

    // The client is told at once: a stream that waits for its first message may have no answer for long.

    func authenticated(output: inout OutputQueue) {
        isAuthenticated = true
        submitSettings()
        engine.setConnectionWindow(limits.waitingBytesMax)
        pump(&output)
    }

    func lostCredential(output: inout OutputQueue) {
        isAuthenticated = false
        submitSettings()
        pump(&output)
    }

    private func close(_ reason: CloseReason, _ output: inout OutputQueue) {
        guard !isClosed else { return }
        engine.goAway(reason.http2Code, reason.text)
        pump(&output)
        isClosed = true
        notices.append(.close)
    }

    func end(_ reason: CloseReason, output: inout OutputQueue) -> SessionEvent {
        close(reason, &output)
        return .close
    }

    func beginDrain(output: inout OutputQueue) -> SessionEvent {
        guard !isClosed, !isRefusing else { return .none }
        engine.announceGoAway()
        // HTTP/2 would put a PING ahead of everything that waits, but its answer has to come from a client that has the
        // GOAWAY.
        pump(&output)
        engine.ping(Self.drainPing)
        awaitsEcho = true
        pump(&output)
        return .none
    }

    func finishDrain(output: inout OutputQueue) -> SessionEvent {
        guard !isClosed, !isRefusing else { return .none }
        (isRefusing, flood.ignoresRequests) = (true, true)
        engine.goAway(.noError, CloseReason.shutdown.text)
        pump(&output)
        return closeIfDone()
    }

    /// The event that ends the connection after its last stream.
    func closeIfDone() -> SessionEvent {
        guard isRefusing, streams.isEmpty, !isClosed else { return .none }
        isClosed = true
        return .close
    }

    func pingAcknowledged(_ opaque: UInt64) {
        if opaque == Self.drainPing, awaitsEcho {
            awaitsEcho = false
            notices.append(.echo)
        }
        if opaque == Self.probePing { notices.append(.probeAnswered) }
    }

    func peerLeft() {
        isRefusing = true
        if streams.isEmpty { notices.append(.close) }
    }

    func violated() { metrics.framesRefused.add() }

    func addPending(_ change: Int) { pendingByteCount += change }
}
