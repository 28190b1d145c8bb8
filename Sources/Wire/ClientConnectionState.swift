// The client's side of the protocol, one per connection. Pure, like `ConnectionState`.

public import Base
public import Messages

/// The state machine of a client connection.
///
/// The client may send HELLO and its first requests in one write; until the server's HELLO is there, it keeps to what
/// every server takes: 64 KiB frames, 16 streams, no control frames. A server that answers anything else first is a
/// stock ttrpc server. One owner, not thread-safe.
public struct ClientConnectionState: Sendable {
    enum Phase: Sendable {
        /// HELLO was sent, nothing was received. Next: `open`, `closed`.
        case greeting
        /// Next: `closed`.
        case open(ConnectionState.Dialect)
        /// Next: none.
        case closed
    }

    struct Stream: StreamRecord {
        enum Phase: Sendable {
            /// RESPONSE is all that may come. Next: removed.
            case unary
            /// We may send DATA. Next: `localClosed`, removed.
            case localOpen
            /// We sent our last. Next: removed.
            case localClosed
        }

        let id: UInt32
        var phase: Phase
        var window: StreamWindow
    }

    public let limits: Limits
    /// The HELLO that opens the connection; nil for a client that is to speak stock ttrpc.
    public let hello: WireHello?

    private(set) var phase: Phase
    /// GOAWAY came: the server takes no new streams.
    private var serverLeaves = false
    private var streams = StreamTable<Stream>()
    private var nextStream: UInt32 = 1
    private var pingInFlight: UInt64?

    /// `authorization` goes into HELLO, so that the server's larger limits hold from the first request on. Empty: no
    /// credential.
    public init(limits: Limits, software: Text, authorization: Text = .empty, usingExtensions: Bool = true) {
        self.limits = limits
        guard usingExtensions else {
            self.hello = nil
            self.phase = .open(.stock)
            return
        }
        self.hello = WireHello(
            protocolVersion: 1, frameBytesMax: UInt32(clamping: limits.framePayloadHardMax),
            streamsMax: 0, initialWindow: UInt32(clamping: StreamWindow.initialReceive(limits)), software: software,
            authorization: authorization)
        self.phase = .greeting
    }

    /// The server's HELLO; nil before it came, and for a stock server.
    public var server: WireHello? {
        guard case .open(.extended(let hello)) = phase else { return nil }
        return hello
    }

    public var isClosed: Bool {
        if case .closed = phase { true } else { false }
    }

    public var streamsInFlight: Int { streams.count }

    /// How many bytes of one stream's DATA a server with HELLO may send before the reader takes some.
    public static func streamWindow(_ limits: Limits) -> Int { StreamWindow.initialReceive(limits) }

    /// Largest payload that may be sent now.
    public var peerPayloadMax: Int {
        switch phase {
        case .greeting, .closed: limits.framePayloadMaxUnauthenticated
        case .open(.stock): WireHello.payloadMaxDefault
        case .open(.extended(let hello)): hello.payloadMax
        }
    }

    /// How many streams may be in flight now. A server may still refuse (`refused`) above 16 before it knows the
    /// caller.
    public var streamsMax: Int {
        switch phase {
        case .greeting, .closed: limits.streamsMaxUnauthenticated
        case .open(.stock): limits.streamsMax
        case .open(.extended(let hello)): hello.streamsMax == 0 ? limits.streamsMax : Int(hello.streamsMax)
        }
    }

    /// The id for a new stream; its REQUEST must be the next one appended.
    public mutating func openStream(_ kind: StreamKind) throws(StreamRefusal) -> UInt32 {
        guard !isClosed, !serverLeaves, nextStream <= StreamID.max else { throw .connectionSpent }
        guard streams.count < streamsMax else { throw .busy }
        let id = nextStream
        nextStream += 2
        streams.append(Stream(id: id, phase: .init(kind), window: newWindow))
        return id
    }

    /// Gives a stream up. Returns the frame to send, or nil if the stream is over already or the server could not read
    /// it. Later frames for the stream are dropped.
    public mutating func cancel(stream: UInt32, _ code: WireCode) -> ControlFrame? {
        guard let index = streams.index(of: stream) else { return nil }
        streams.remove(at: index)
        return server == nil ? nil : .cancel(stream: stream, code)
    }

    /// Whether DATA may be sent now. False: wait for `sendWindowOpened`, or the stream is over.
    public func maySendData(stream: UInt32) -> Bool {
        guard !isClosed, let index = streams.index(of: stream), streams[index].phase == .localOpen else { return false }
        return streams[index].window.sendCredit > 0
    }

    /// DATA with a message was appended; `maySendData` returned true before.
    public mutating func sentData(stream: UInt32, payloadByteCount: Int) {
        guard let index = streams.index(of: stream) else { preconditionFailure("stream \(stream) is not in flight") }
        streams[index].window.sent(payloadByteCount)
    }

    /// DATA that closes our side was appended.
    public mutating func closedSending(stream: UInt32) {
        guard let index = streams.index(of: stream), streams[index].phase == .localOpen else { return }
        streams[index].phase = .localClosed
    }

    /// The reader took a message of this size. Returns the WINDOW to send, if it is time for one.
    public mutating func consumed(stream: UInt32, payloadByteCount: Int) -> ControlFrame? {
        guard let index = streams.index(of: stream), !isClosed,
            let credit = streams[index].window.took(payloadByteCount, window: StreamWindow.initialReceive(limits)),
            server != nil
        else { return nil }
        return .window(stream: stream, credit: credit)
    }

    /// A PING to send, whose answer comes back as `pingAcknowledged`; nil unless the server is known to answer.
    public mutating func ping(_ opaque: UInt64) -> ControlFrame? {
        guard server != nil else { return nil }
        pingInFlight = opaque
        return .ping(opaque, ack: false)
    }

    /// The connection is gone. Returns the streams that were in flight: the server may or may not have processed them,
    /// so that only a request that may be done twice is safe to send again.
    public mutating func connectionLost() -> [UInt32] {
        phase = .closed
        return streams.removeAll(above: 0)
    }
}

extension ClientConnectionState {
    /// Decides what to do about a frame. `payload` is read for control frames only. The first frame, of whatever type,
    /// tells which protocol the server speaks and may open every stream's window: look at `maySendData` again after it.
    public mutating func received(_ header: FrameHeader, payload: UnsafeRawBufferPointer) -> ClientAction {
        switch phase {
        case .closed: return .none
        case .greeting:
            if header.type == .hello { return receivedHello(header, payload) }
            becomeStock()
            if header.type == .response, header.stream == 0 { return .welcomed }
        case .open: break
        }
        switch header.type {
        case .response: return receivedResponse(header.stream)
        case .data: return receivedData(header)
        case .request: return violated(.frameForOtherSide)
        case .hello: return violated(.helloNotFirst)
        case .ping, .goAway, .cancel, .window:
            return server == nil ? violated(.extensionWithoutHello) : receivedControl(header, payload)
        default: return header.type.isCritical ? violated(.unknownCriticalFrame) : .none
        }
    }

    /// Ends the connection, for example because of a frame above the limit or a timer.
    public mutating func violated(_ reason: CloseReason) -> ClientAction {
        phase = .closed
        return .close(reason)
    }

    private mutating func receivedHello(_ header: FrameHeader, _ payload: UnsafeRawBufferPointer) -> ClientAction {
        guard header.stream == 0, header.flags.isEmpty, let hello = WireHello.validated(payload, limits: limits) else {
            return violated(.malformedHello)
        }
        phase = .open(.extended(hello))
        for index in streams.records.indices {
            guard streams[index].window.granted(hello.window - StreamWindow.initialDefault) != .overflow else {
                return violated(.windowOverflow)
            }
        }
        return .welcomed
    }

    /// A stock server answers HELLO with a failed RESPONSE on stream 0, or not at all.
    private mutating func becomeStock() {
        phase = .open(.stock)
        for index in streams.records.indices { streams[index].window = newWindow }
    }

    private mutating func receivedResponse(_ stream: UInt32) -> ClientAction {
        // Not in flight: it was cancelled here.
        guard let index = streams.index(of: stream) else { return .none }
        streams.remove(at: index)
        return .response(stream: stream)
    }

    private mutating func receivedData(_ header: FrameHeader) -> ClientAction {
        guard let index = streams.index(of: header.stream) else { return .none }
        guard streams[index].phase != .unary, let content = DataContent(header) else {
            return violated(.malformedControlFrame)
        }
        if content.hasMessage, !streams[index].window.received(Int(header.payloadByteCount)) {
            return violated(.windowExceeded)
        }
        if content.isLast { streams.remove(at: index) }
        guard content.hasMessage else { return content.isLast ? .ended(stream: header.stream) : .none }
        return .data(stream: header.stream, last: content.isLast)
    }

    private mutating func receivedControl(_ header: FrameHeader, _ payload: UnsafeRawBufferPointer) -> ClientAction {
        switch header.type {
        case .ping:
            guard header.stream == 0, let opaque = pingOpaque(payload) else { return violated(.malformedControlFrame) }
            guard header.flags.contains(.ack) else { return .pong(opaque) }
            guard pingInFlight == opaque else { return .none }
            pingInFlight = nil
            return .pingAcknowledged(opaque)
        case .goAway:
            guard header.stream == 0, let message = try? WireGoAway(decoding: payload, limits: limits.messages) else {
                return violated(.malformedControlFrame)
            }
            serverLeaves = true
            return .goAway(message.code, unprocessed: streams.removeAll(above: message.lastStreamID))
        case .cancel:
            guard let code = cancelCode(payload, limits: limits.messages) else {
                return violated(.malformedControlFrame)
            }
            guard let index = streams.index(of: header.stream) else { return .none }
            streams.remove(at: index)
            return .cancelled(stream: header.stream, code)
        default:
            guard let credit = try? WireWindow(decoding: payload, limits: limits.messages).credit, credit > 0 else {
                return violated(.malformedControlFrame)
            }
            guard let index = streams.index(of: header.stream), streams[index].phase != .unary else { return .none }
            switch streams[index].window.granted(Int(credit)) {
            case .opened: return .sendWindowOpened(stream: header.stream)
            case .unchanged: return .none
            case .overflow: return violated(.windowOverflow)
            }
        }
    }

    /// A stock server knows no windows, so a message too many does not end the connection. It ends the stream: see
    /// `StreamInbox`.
    private var newWindow: StreamWindow {
        switch phase {
        case .greeting: StreamWindow(send: StreamWindow.initialDefault, receive: StreamWindow.initialReceive(limits))
        case .open(.extended(let hello)): StreamWindow(send: hello.window, receive: StreamWindow.initialReceive(limits))
        case .open(.stock), .closed: StreamWindow(send: StreamWindow.unlimited, receive: StreamWindow.unlimited)
        }
    }
}

extension ClientConnectionState.Stream.Phase {
    init(_ kind: StreamKind) {
        switch kind {
        case .unary: self = .unary
        case .remoteClosed: self = .localClosed
        case .remoteOpen: self = .localOpen
        }
    }
}
