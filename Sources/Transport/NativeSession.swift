import Base
import Messages
import Wire

/// The native protocol: `FrameDecoder` finds the frames, `ConnectionState` decides, and this type puts both together.
final class NativeSession: ProtocolSession {
    /// The first byte of a frame's length, which is far below 16 MiB.
    static let firstByte: UInt8 = 0
    private static let (drainPing, probePing): (UInt64, UInt64) = (1, 2)

    var name: StaticString { "native" }
    private(set) var hasSeenRequest = false
    private(set) var request = RequestEnvelope.none
    // Proof: both are values that know neither this session nor its connection, which runs on one thread.
    @exclusivity(unchecked) private var state: ConnectionState
    @exclusivity(unchecked) private var decoder: FrameDecoder
    private let limits: SharedLimits
    private let metrics: TransportMetrics

    init(limits: SharedLimits, software: Text, metrics: TransportMetrics) {
        self.state = ConnectionState(limits: limits, software: software)
        self.decoder = FrameDecoder(payloadHardMax: limits.values.framePayloadHardMax)
        self.limits = limits
        self.metrics = metrics
    }

    var partialSince: Instant? { decoder.partialSince }

    func next(in input: inout ByteBuffer, output: inout OutputQueue, now: Instant, mayBegin: Bool) -> SessionEvent {
        switch decoder.next(in: &input, payloadMax: state.payloadMax, now: now) {
        case .needMore: return .needMore
        case .frame(let header, let payload):
            let action = state.received(header, payload: payload, now: now)
            // Nearly all frames are requests.
            if case .startRequest(let stream, let kind) = action { return begin(stream, kind, payload, &output) }
            return event(action, payload, &output)
        case .oversized(let header):
            metrics.framesRefused.add()
            return event(state.receivedOversized(header, now: now), &output)
        case .violation:
            metrics.framesRefused.add()
            return end(.frameAboveHardCap, output: &output)
        }
    }

    private func event(_ action: ConnectionAction, _ output: inout OutputQueue) -> SessionEvent {
        event(action, UnsafeRawBufferPointer(start: nil, count: 0), &output)
    }

    /// Appends the frames of the action to the output, and leaves the rest to the connection.
    private func event(
        _ action: ConnectionAction, _ payload: UnsafeRawBufferPointer, _ output: inout OutputQueue
    ) -> SessionEvent {
        switch action {
        case .none: return .none
        case .welcome: return welcome(&output)
        case .startRequest(let stream, let kind): return begin(stream, kind, payload, &output)
        case .data(let stream, let last): return .message(stream: stream, payload, isLast: last)
        case .remoteClosed(let stream): return .remoteClosed(stream: stream)
        case .cancel(let stream, _): return .cancel(stream: stream)
        case .respondFailure(let stream, let error):
            metrics.framesRefused.add()
            output.append { $0.appendFailure(stream: stream, error.failure) }
            return .none
        case .failStream(let stream, let error):
            output.append { $0.appendFailure(stream: stream, error.failure) }
            return .cancel(stream: stream)
        case .sendWindowOpened(let stream): return .windowOpened(stream: stream)
        case .reply(let frame):
            output.append { frame.append(to: &$0) }
            return .none
        case .pong(let opaque):
            output.appendAhead { ControlFrame.ping(opaque, ack: true).append(to: &$0) }
            return .none
        case .pingAcknowledged(let opaque): return opaque == Self.probePing ? .probeAnswered : .echo
        case .close(_, let farewell):
            if let farewell { output.append { farewell.append(to: &$0) } }
            return .close
        }
    }

    private func welcome(_ output: inout OutputQueue) -> SessionEvent {
        output.append { $0.appendHello(state.hello) }
        guard let authorization = state.peer?.authorization, !authorization.isEmpty else { return .none }
        return .authenticate(authorization)
    }

    private func begin(
        _ stream: UInt32, _ kind: StreamKind, _ payload: UnsafeRawBufferPointer, _ output: inout OutputQueue
    ) -> SessionEvent {
        hasSeenRequest = true
        do {
            request = try RequestEnvelope(reading: payload, limits: limits.values.messages)
            return .begin(stream: stream, kind: kind)
        } catch {
            metrics.framesRefused.add()
            output.append { $0.appendFailure(stream: stream, error.failure) }
            return finished(stream: stream, output: &output)
        }
    }

    func releaseIdleMemory() { state.releaseIdleMemory() }

    // MARK: The connection

    func authenticated(output: inout OutputQueue) { state.authenticated() }

    func lostCredential(output: inout OutputQueue) { state.lostCredential() }

    func end(_ reason: CloseReason, output: inout OutputQueue) -> SessionEvent {
        event(state.violated(reason), &output)
    }

    func beginDrain(output: inout OutputQueue) -> SessionEvent {
        let event = event(state.beginDrain(), &output)
        if !state.isClosed, let ping = state.ping(Self.drainPing) { output.append { ping.append(to: &$0) } }
        return event
    }

    func appendProbe(output: inout OutputQueue) -> Bool {
        guard !state.isClosed, let ping = state.ping(Self.probePing) else { return false }
        output.append { ping.append(to: &$0) }
        return true
    }

    func finishDrain(output: inout OutputQueue) -> SessionEvent { event(state.finishDrain(), &output) }

    // MARK: A call

    func wantsAnswer(stream: UInt32) -> Bool { state.wantsAnswer(stream: stream) }

    func appendResponse(
        stream: UInt32, metadata: OutgoingMetadata, output: inout OutputQueue,
        write: (inout ByteBuffer) throws -> Void
    ) rethrows -> Bool {
        let payloadMax = state.peerPayloadMax
        return try output.append {
            try $0.appendResponse(stream: stream, metadata: metadata, payloadMax: payloadMax, write: write)
        }
    }

    func appendFailure(stream: UInt32, _ failure: Failure, metadata: OutgoingMetadata, output: inout OutputQueue) {
        output.append { $0.appendFailure(stream: stream, failure, metadata: metadata) }
    }

    func maySendMessage(stream: UInt32) -> Bool { state.maySendData(stream: stream) }

    func appendMessage(
        stream: UInt32, output: inout OutputQueue, write: (inout ByteBuffer) throws -> Bool
    ) rethrows -> Bool {
        let payloadMax = state.peerPayloadMax
        let appended = try output.append {
            try $0.appendData(stream: stream, payloadMax: payloadMax, ifAny: write)
        }
        if case .message(let payloadByteCount) = appended {
            state.sentData(stream: stream, payloadByteCount: payloadByteCount)
        }
        return appended != .tooLarge
    }

    func appendEnd(stream: UInt32, output: inout OutputQueue) { output.append { $0.appendDataEnd(stream: stream) } }

    func consumed(stream: UInt32, byteCount: Int, output: inout OutputQueue) {
        _ = event(state.consumed(stream: stream, payloadByteCount: byteCount), &output)
    }

    func abandoned(stream: UInt32) { state.abandoned(stream: stream) }

    func finished(stream: UInt32, output: inout OutputQueue) -> SessionEvent {
        event(state.finished(stream: stream), &output)
    }
}
