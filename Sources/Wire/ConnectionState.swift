// The server's side of the protocol, one per connection. Pure: the connection feeds it what was received and performs
// the action it returns. No socket, no clock, no task; one owner, not thread-safe.

public import Base
public import Messages

/// The state machine of a server connection.
///
/// Feed it every frame of the `FrameDecoder` (`received`, `receivedOversized`, and `violated` for frames above the hard
/// cap), and every stream's end (`finished`). Streams it started count against the limit until their work has stopped,
/// cancelled or not.
public struct ConnectionState: Sendable {
    enum Dialect: Sendable {
        /// ttrpc 1.2: no control frames, no flow control.
        case stock
        /// Opened with HELLO.
        case extended(WireHello)
    }

    enum Phase: Sendable {
        /// Nothing was received. Next: `open`, `closed`.
        case opening
        /// Next: `closed`.
        case open(Dialect)
        /// Next: none.
        case closed
    }

    enum Admission: Sendable {
        /// Next: `announced`, `refusing`.
        case admitting
        /// The client was told that the server stops; requests that it sent before it knew are still taken. Next:
        /// `refusing`.
        case announced
        /// New streams are refused; the connection closes when nothing is in flight. Next: none.
        case refusing(CloseReason)
    }

    struct Stream: StreamRecord {
        enum Phase: Sendable {
            /// The client sends no DATA, and gets none. Next: `abandoned`, removed.
            case unary
            /// The client may send DATA. Next: `remoteClosed`, `abandoned`, removed.
            case remoteOpen
            /// The client sends no more. Next: `abandoned`, removed.
            case remoteClosed
            /// Over for the client (cancelled or failed), while its work still runs. Next: removed.
            case abandoned
        }

        let id: UInt32
        var phase: Phase
        var window: StreamWindow
    }

    private let shared: SharedLimits
    public var limits: Limits { shared.values }
    /// Our answer to a HELLO.
    public let hello: WireHello

    private(set) var phase = Phase.opening
    private(set) var admission = Admission.admitting
    private var isAuthenticated = false
    var streams = StreamTable<Stream>()
    /// The highest id used, and the highest id whose work was started, which GOAWAY names.
    var lastStream: UInt32 = 0
    var lastStarted: UInt32 = 0
    var cancelRate: EventRate
    private var pingRate: EventRate
    private var pingInFlight: UInt64?

    public init(limits shared: SharedLimits, software: Text) {
        let limits = shared.values
        self.shared = shared
        self.payloadMax = limits.framePayloadMaxUnauthenticated
        self.hello = WireHello(
            protocolVersion: 1, frameBytesMax: UInt32(clamping: limits.framePayloadMax),
            streamsMax: UInt32(clamping: limits.streamsMax),
            initialWindow: UInt32(clamping: StreamWindow.initialReceive(limits)),
            software: software)
        self.cancelRate = EventRate(perSecondMax: limits.cancelsPerSecondMax)
        self.pingRate = EventRate(perSecondMax: limits.pingsPerSecondMax)
    }

    /// The client's HELLO; nil for a stock ttrpc client.
    public var peer: WireHello? {
        guard case .open(.extended(let hello)) = phase else { return nil }
        return hello
    }

    public var isClosed: Bool {
        if case .closed = phase { true } else { false }
    }

    /// The current limit for the `FrameDecoder`.
    public private(set) var payloadMax: Int

    /// The largest payload the client takes: for a stock client, ttrpc's 4 MiB.
    public private(set) var peerPayloadMax = WireHello.payloadMaxDefault
    /// The bytes that may be sent on a new stream before the client gives credit.
    private(set) var peerWindow = StreamWindow.unlimited

    public var streamsMax: Int { isAuthenticated ? limits.streamsMax : limits.streamsMaxUnauthenticated }

    public var streamsInFlight: Int { streams.count }

    /// Gives back the memory of streams that have ended, if there are no others.
    public mutating func releaseIdleMemory() { streams.releaseIfIdle() }

    /// A valid credential was presented: the larger limits count from the next frame on.
    public mutating func authenticated() {
        isAuthenticated = true
        payloadMax = limits.framePayloadMax
    }

    /// The credential is no longer valid: the smaller limits count again.
    public mutating func lostCredential() {
        isAuthenticated = false
        payloadMax = limits.framePayloadMaxUnauthenticated
    }

    /// Decides what to do about a frame. `payload` is read for control frames only.
    public mutating func received(
        _ header: FrameHeader, payload: UnsafeRawBufferPointer, now: Instant
    ) -> ConnectionAction {
        switch phase {
        case .closed: return .none
        case .opening:
            if header.type == .hello { return receivedHello(header, payload) }
            phase = .open(.stock)
        case .open: break
        }
        switch header.type {
        case .request: return receivedRequest(header)
        case .data: return receivedData(header, now: now)
        case .response: return violated(.frameForOtherSide)
        case .hello: return violated(.helloNotFirst)
        case .ping, .goAway, .cancel, .window: return receivedControl(header, payload, now: now)
        default: return header.type.isCritical ? violated(.unknownCriticalFrame) : .none
        }
    }

    /// Decides what to do about a frame above `payloadMax`, of which only the header is known.
    public mutating func receivedOversized(_ header: FrameHeader, now: Instant) -> ConnectionAction {
        switch phase {
        case .closed: return .none
        case .opening where header.type != .hello: phase = .open(.stock)
        case .opening, .open: break
        }
        switch header.type {
        case .request:
            if let refusal = admit(header.stream) { return refusal }
            return .respondFailure(stream: header.stream, .frameTooLarge)
        case .data:
            switch dataStream(header.stream) {
            case .inFlight(let index): return fail(at: index, .frameTooLarge, now: now)
            case .notInFlight(let action): return action
            }
        case .response: return violated(.frameForOtherSide)
        case .hello, .ping, .goAway, .cancel, .window: return violated(.controlFrameTooLarge)
        default: return header.type.isCritical ? violated(.unknownCriticalFrame) : .none
        }
    }

    /// Ends the connection because of something that the connection itself noticed, for example a frame above the hard
    /// cap or a passed deadline.
    public mutating func violated(_ reason: CloseReason) -> ConnectionAction {
        let farewell = farewell(reason)
        phase = .closed
        return .close(reason, farewell: farewell)
    }

    /// The GOAWAY that ends the connection. Nil for a stock client, which does not know that frame.
    private func farewell(_ reason: CloseReason) -> ControlFrame? {
        peer == nil ? nil : .goAway(lastStream: lastStarted, reason)
    }

    /// First step of a graceful stop: tells the client to go elsewhere. What it sends before it knows is still taken;
    /// give it a round trip (`ping`), then call `finishDrain`.
    public mutating func beginDrain() -> ConnectionAction {
        guard case .admitting = admission, !isClosed else { return .none }
        admission = .announced
        return peer == nil ? .none : .reply(.goAway(lastStream: StreamID.max, .shutdown))
    }

    /// Second step: new streams are refused from here on. Closes at once if nothing is in flight; otherwise the last
    /// `finished` closes.
    public mutating func finishDrain() -> ConnectionAction {
        if case .refusing = admission { return .none }
        guard !isClosed else { return .none }
        admission = .refusing(.shutdown)
        let farewell = farewell(.shutdown)
        if streams.isEmpty {
            phase = .closed
            return .close(.shutdown, farewell: farewell)
        }
        return farewell.map { .reply($0) } ?? .none
    }

    /// A PING to send, whose answer comes back as `pingAcknowledged`; nil for a stock client.
    public mutating func ping(_ opaque: UInt64) -> ControlFrame? {
        guard peer != nil else { return nil }
        pingInFlight = opaque
        return .ping(opaque, ack: false)
    }
}

extension ConnectionState {
    private mutating func receivedHello(_ header: FrameHeader, _ payload: UnsafeRawBufferPointer) -> ConnectionAction {
        guard header.stream == 0, header.flags.isEmpty, let hello = WireHello.validated(payload, limits: limits) else {
            return violated(.malformedHello)
        }
        phase = .open(.extended(hello))
        peerPayloadMax = hello.payloadMax
        peerWindow = hello.window
        return .welcome
    }

    private mutating func receivedControl(
        _ header: FrameHeader, _ payload: UnsafeRawBufferPointer, now: Instant
    ) -> ConnectionAction {
        guard peer != nil else { return violated(.extensionWithoutHello) }
        switch header.type {
        case .ping: return receivedPing(header, payload, now: now)
        case .goAway:
            guard header.stream == 0, (try? WireGoAway(decoding: payload, limits: limits.messages)) != nil else {
                return violated(.malformedControlFrame)
            }
            admission = .refusing(.peerLeft)
            return closeIfDone()
        case .cancel:
            guard header.stream != 0, let code = cancelCode(payload, limits: limits.messages) else {
                return violated(.malformedControlFrame)
            }
            return receivedCancel(header.stream, code, now: now)
        default:
            guard header.stream != 0, let credit = try? WireWindow(decoding: payload, limits: limits.messages).credit,
                credit > 0
            else { return violated(.malformedControlFrame) }
            return receivedWindow(header.stream, Int(credit))
        }
    }

    private mutating func receivedPing(
        _ header: FrameHeader, _ payload: UnsafeRawBufferPointer, now: Instant
    ) -> ConnectionAction {
        guard header.stream == 0, let opaque = pingOpaque(payload) else { return violated(.malformedControlFrame) }
        guard pingRate.note(at: now) else { return violated(.tooManyPings) }
        guard header.flags.contains(.ack) else { return .pong(opaque) }
        guard pingInFlight == opaque else { return .none }
        pingInFlight = nil
        return .pingAcknowledged(opaque)
    }

    /// Closes if nothing is left. Called after a stream has ended, or when the client sent GOAWAY.
    mutating func closeIfDone() -> ConnectionAction {
        guard case .refusing(let reason) = admission, streams.isEmpty, !isClosed else { return .none }
        phase = .closed
        return .close(reason, farewell: nil)
    }

    /// New streams are not taken any more.
    var isRefusing: Bool {
        if case .refusing = admission { true } else { false }
    }
}
