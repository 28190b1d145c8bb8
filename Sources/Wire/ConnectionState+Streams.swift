// The events of a server connection's streams.

import Base
import Messages

extension ConnectionState {
    /// The stream's work has stopped, whatever its end was. Call this once for every `startRequest`, after the stream's
    /// last frame was appended.
    public mutating func finished(stream: UInt32) -> ConnectionAction {
        guard let index = streams.index(of: stream) else { preconditionFailure("stream \(stream) finished twice") }
        streams.remove(at: index)
        return closeIfDone()
    }

    /// The client was told that the stream has ended (its deadline passed) while the stream's work still runs. The
    /// stream counts until `finished`.
    public mutating func abandoned(stream: UInt32) {
        guard let index = streams.index(of: stream) else { preconditionFailure("stream \(stream) is not in flight") }
        streams[index].phase = .abandoned
    }

    /// False once the stream was cancelled or failed: nothing may be sent on it any more.
    public func wantsAnswer(stream: UInt32) -> Bool {
        guard !isClosed, let index = streams.index(of: stream) else { return false }
        return streams[index].phase != .abandoned
    }

    /// Whether a DATA frame may be sent now. False: wait for `sendWindowOpened`, or the stream is no longer wanted.
    public func maySendData(stream: UInt32) -> Bool {
        guard !isClosed, let index = streams.index(of: stream) else { return false }
        switch streams[index].phase {
        case .unary, .abandoned: return false
        case .remoteOpen, .remoteClosed: return streams[index].window.sendCredit > 0
        }
    }

    /// A DATA frame with a message was appended; `maySendData` returned true before.
    public mutating func sentData(stream: UInt32, payloadByteCount: Int) {
        guard let index = streams.index(of: stream) else { preconditionFailure("stream \(stream) is not in flight") }
        streams[index].window.sent(payloadByteCount)
    }

    /// The handler took a message of this size. Returns the WINDOW when it is time to give the client more credit.
    public mutating func consumed(stream: UInt32, payloadByteCount: Int) -> ConnectionAction {
        guard let index = streams.index(of: stream), !isClosed else { return .none }
        let credit = streams[index].window.took(payloadByteCount, window: StreamWindow.initialReceive(limits))
        guard let credit, peer != nil, streams[index].phase == .remoteOpen else { return .none }
        return .reply(.window(stream: stream, credit: credit))
    }
}

extension ConnectionState {
    /// Checks a new stream's id and the limits. Returns the refusal, or nil if the stream may begin.
    mutating func admit(_ stream: UInt32) -> ConnectionAction? {
        guard StreamID.isClientStream(stream) else { return .respondFailure(stream: stream, .invalidStreamID) }
        guard stream > lastStream else {
            guard streams.index(of: stream) == nil else { return violated(.streamInUse) }
            return .respondFailure(stream: stream, .streamIDNotIncreasing)
        }
        lastStream = stream
        if isRefusing { return refuse(stream, .shuttingDown) }
        if streams.count >= streamsMax { return refuse(stream, .tooManyStreams) }
        return nil
    }

    mutating func receivedRequest(_ header: FrameHeader) -> ConnectionAction {
        if let refusal = admit(header.stream) { return refusal }
        guard let kind = StreamKind(header.flags) else {
            return .respondFailure(stream: header.stream, .invalidFlags)
        }
        lastStarted = header.stream
        streams.append(Stream(id: header.stream, phase: .init(kind), window: newWindow))
        return .startRequest(stream: header.stream, kind)
    }

    /// The stream of a DATA frame.
    enum DataStream {
        /// The index of the stream in `streams`.
        case inFlight(at: Int)
        /// The stream takes no DATA. The connection performs this action.
        case notInFlight(ConnectionAction)
    }

    func dataStream(_ stream: UInt32) -> DataStream {
        guard StreamID.isClientStream(stream) else {
            return .notInFlight(.respondFailure(stream: stream, .invalidStreamID))
        }
        guard stream <= lastStream else { return .notInFlight(.respondFailure(stream: stream, .unknownStream)) }
        // The stream was finished or abandoned, and the client sent the frame before it knew.
        guard let index = streams.index(of: stream), streams[index].phase != .abandoned else {
            return .notInFlight(.none)
        }
        return .inFlight(at: index)
    }

    mutating func receivedData(_ header: FrameHeader, now: Instant) -> ConnectionAction {
        let index: Int
        switch dataStream(header.stream) {
        case .inFlight(let found): index = found
        case .notInFlight(let action): return action
        }
        guard streams[index].phase == .remoteOpen else { return fail(at: index, .dataNotExpected, now: now) }
        guard let content = DataContent(header) else { return fail(at: index, .invalidFlags, now: now) }
        if content.isLast { streams[index].phase = .remoteClosed }
        guard content.hasMessage else { return content.isLast ? .remoteClosed(stream: header.stream) : .none }
        guard streams[index].window.received(Int(header.payloadByteCount)) else {
            return fail(at: index, .windowExceeded, now: now)
        }
        return .data(stream: header.stream, last: content.isLast)
    }

    mutating func receivedCancel(_ stream: UInt32, _ code: WireCode, now: Instant) -> ConnectionAction {
        guard let index = streams.index(of: stream), streams[index].phase != .abandoned else { return .none }
        streams[index].phase = .abandoned
        guard cancelRate.note(at: now) else { return violated(.tooManyCancels) }
        return .cancel(stream: stream, code)
    }

    mutating func receivedWindow(_ stream: UInt32, _ credit: Int) -> ConnectionAction {
        guard let index = streams.index(of: stream) else { return .none }
        switch streams[index].phase {
        case .unary, .abandoned: return .none
        case .remoteOpen, .remoteClosed: break
        }
        switch streams[index].window.granted(credit) {
        case .opened: return .sendWindowOpened(stream: stream)
        case .unchanged: return .none
        case .overflow: return violated(.windowOverflow)
        }
    }

    /// Ends a stream because of a frame of the client. The end counts as a cancel does, because a client can provoke it
    /// as often.
    mutating func fail(at index: Int, _ error: StreamError, now: Instant) -> ConnectionAction {
        streams[index].phase = .abandoned
        guard cancelRate.note(at: now) else { return violated(.tooManyCancels) }
        return .failStream(stream: streams[index].id, error)
    }

    private func refuse(_ stream: UInt32, _ error: StreamError) -> ConnectionAction {
        peer == nil ? .respondFailure(stream: stream, error) : .reply(.cancel(stream: stream, .refused))
    }

    private var newWindow: StreamWindow {
        StreamWindow(send: peerWindow, receive: StreamWindow.initialReceive(limits))
    }
}

extension ConnectionState.Stream.Phase {
    init(_ kind: StreamKind) {
        switch kind {
        case .unary: self = .unary
        case .remoteClosed: self = .remoteClosed
        case .remoteOpen: self = .remoteOpen
        }
    }
}
