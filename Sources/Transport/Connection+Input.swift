import Base
import Messages
import Reactor
import Wire

extension Connection {
    /// One read per event: level-triggered readiness comes back for the rest, after the other connections' turn.
    private static let readByteCount = 64 * 1024

    /// Reads into the loop's buffer and keeps only what is left of an unfinished frame: a connection that is between
    /// two requests holds no input memory at all.
    func readable() {
        guard phase != .closed else { return }
        guard input.isEmpty else {
            // The rest of a frame: there may be no memory for it now.
            if isFull || !hasRoomForInput { return pauseReading() }
            readOnce()
            return account()
        }
        swap(&input, &share.buffer)
        isReadingIntoLoopBuffer = true
        readOnce()
        isReadingIntoLoopBuffer = false
        if input.isEmpty {
            swap(&input, &share.buffer)
        } else {
            var rest = ByteBuffer()
            rest.append(contentsOf: input.readable)
            input.consume(input.readableByteCount)
            swap(&input, &share.buffer)
            input = rest
        }
        account()
    }

    /// Appends to `input`, which is the loop's buffer or holds the beginning of a frame: that one grows by what came
    /// only.
    private func readOnce() {
        let buffer =
            isReadingIntoLoopBuffer ? input.reserve(Self.readByteCount) : share.buffer.reserve(Self.readByteCount)
        switch socket.read(into: buffer, byteCount: Self.readByteCount) {
        case .bytes(0): peerEnded()
        case .bytes(let count):
            metrics.bytesReceived.add(UInt64(count))
            if phase == .lingering || phase == .closing { return }
            if isReadingIntoLoopBuffer {
                input.commit(count)
            } else {
                input.append(contentsOf: UnsafeRawBufferPointer(start: buffer, count: count))
            }
            let now = Instant.now
            // 0x00 is this protocol; TLS (0x16), HTTP/2 (0x50) and whatever else are not spoken here.
            if !hasSeenFirstByte, input.readable.first != 0 { return closeNow() }
            hasSeenFirstByte = true
            lastReadAt = now
            decode(now: now)
        case .wouldBlock: break
        case .failed: closeNow()
        }
    }

    /// Takes frames until the input is used up, the output is too full, or the connection ends.
    func decode(now: Instant) {
        isDecoding = true
        defer {
            isDecoding = false
            if phase == .closed { input = ByteBuffer() }
        }
        while phase == .open || phase == .peerClosed {
            account()
            if isFull {
                pauseReading()
                break
            }
            switch decoder.next(in: &input, payloadMax: state.payloadMax, now: now) {
            case .needMore:
                armTimer(now: now)
                return
            case .frame(let header, let payload):
                perform(state.received(header, payload: payload, now: now), header: header, payload: payload)
            case .oversized(let header):
                metrics.framesRefused.add()
                perform(state.receivedOversized(header, now: now))
            case .violation:
                metrics.framesRefused.add()
                perform(state.violated(.frameAboveHardCap))
            }
        }
        if phase != .closed { armTimer(now: now) }
    }

    /// The peer does not read: neither do we, until it has taken half of what waits.
    private func pauseReading() {
        let now = Instant.now
        if readingPausedSince == nil { readingPausedSince = now }
        watch?.setReading(false)
        armTimer(now: now)
    }

    /// More waits than the client may leave waiting.
    private var isFull: Bool { isAbove(1) }

    func resumeReadingIfDrained() {
        guard readingPausedSince != nil, !isDecoding, !isAbove(2) else { return }
        readingPausedSince = nil
        watch?.setReading(phase == .open)
        decode(now: .now)
        account()
    }

    /// Whether `input` may grow by what one read brings; a buffer that is full becomes twice as large.
    private var hasRoomForInput: Bool {
        guard input.readableByteCount + Self.readByteCount > input.capacity else { return true }
        return share.memory.hasRoom(for: max(input.capacity, Self.readByteCount))
    }

    /// Whether more waits than a `part`-th of what may wait.
    private func isAbove(_ part: Int) -> Bool {
        if pagesWaiting >= max(1, limits.pagesWaitingMax / part) { return true }
        if let most = share.memory.holdingMax, countedByteCount > most / part { return true }
        let waiting = inboxByteCount + requestByteCount
        return isAuthenticated
            ? pendingOutputByteCount > limits.unreadOutputMax / part || waiting > limits.waitingBytesMax / part
            : pendingOutputByteCount + waiting > limits.waitingBytesMaxUnauthenticated / part
    }

    /// A peer that only stopped sending still gets its answers; one that is gone shows itself when we write.
    private func peerEnded() {
        switch phase {
        case .open:
            phase = .peerClosed
            watch?.setReading(false)
            for (stream, call) in calls where call.kind != .unary { cancel(stream: stream) }
            closeIfNothingLeft()
        case .peerClosed, .closing, .lingering: closeNow()
        case .closed: break
        }
    }

    func perform(
        _ action: ConnectionAction, header: FrameHeader? = nil,
        payload: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
    ) {
        switch action {
        case .none: break
        case .welcome: welcome()
        case .startRequest(let stream, let kind): begin(stream: stream, kind: kind, payload: payload)
        case .data(let stream, let last): deliver([UInt8](payload), last: last, to: stream)
        case .remoteClosed(let stream): deliver(nil, last: true, to: stream)
        case .cancel(let stream, _): cancel(stream: stream)
        case .respondFailure(let stream, let error):
            metrics.framesRefused.add()
            queue { $0.appendFailure(stream: stream, error.failure) }
        case .failStream(let stream, let error):
            queue { $0.appendFailure(stream: stream, error.failure) }
            cancel(stream: stream)
        case .sendWindowOpened(let stream): calls[stream]?.wakeSender()
        case .reply(let frame): queue { frame.append(to: &$0) }
        case .pong(let opaque): queueAhead { ControlFrame.ping(opaque, ack: true).append(to: &$0) }
        case .pingAcknowledged: finishDrain()
        case .close(_, let farewell):
            if let farewell { queue { farewell.append(to: &$0) } }
            beginClosing()
        }
    }

    private func welcome() {
        let hello = state.hello
        queue { $0.appendHello(hello) }
        if let authorization = state.peer?.authorization, !authorization.isEmpty {
            dispatcher.authenticate(authorization, on: self)
        }
    }

    private func begin(stream: UInt32, kind: StreamKind, payload: UnsafeRawBufferPointer) {
        hasSeenRequest = true
        do {
            let request = try RequestEnvelope(reading: payload, limits: limits)
            dispatcher.handle(request, stream: stream, kind: kind, on: self)
        } catch {
            metrics.framesRefused.add()
            fail(stream: stream, error.failure)
        }
    }
}
