public import Base
import Reactor
public import Wire

extension Connection {
    /// The memory that a connection keeps between bursts: for the answers to requests that come one after the other, or
    /// while a stream waits for news, perhaps for hours. Zero while memory is tight.
    private var outputByteCountKept: Int {
        if share.memory.pressure != .none { return 0 }
        return calls.isEmpty ? 16 * 1024 : 4 * 1024
    }

    var pendingOutputByteCount: Int { output.readableByteCount + backlog.readableByteCount }

    /// Appends frames to what is sent at the end of the turn.
    func queue(_ write: (inout ByteBuffer) throws -> Void) rethrows {
        guard phase != .closed else { return }
        if isWriteBlocked { try write(&backlog) } else { try write(&output) }
        markDirty()
    }

    /// Appends a frame ahead of all output that waits for the peer.
    func queueAhead(_ write: (inout ByteBuffer) -> Void) {
        guard phase != .closed else { return }
        write(&output)
        markDirty()
    }

    /// The answer of a unary call; its last frame. `write` appends the response message, and is not called when nobody
    /// waits for it any more. When `write` throws, the call is not answered yet.
    public func respond(
        stream: UInt32, metadata: OutgoingMetadata, _ write: (inout ByteBuffer) throws -> Void
    ) rethrows {
        guard phase != .closed else { return }
        if state.wantsAnswer(stream: stream) {
            let payloadMax = state.peerPayloadMax
            var isSent = false
            try queue {
                isSent = try $0.appendResponse(
                    stream: stream, metadata: metadata, payloadMax: payloadMax, write: write)
            }
            if !isSent {
                queue { $0.appendFailure(stream: stream, Self.answerTooLarge, metadata: metadata) }
            }
        }
        finished(stream: stream)
    }

    /// The failure of a call; its last frame.
    public func fail(stream: UInt32, _ failure: Failure, metadata: OutgoingMetadata = OutgoingMetadata()) {
        guard phase != .closed else { return }
        if state.wantsAnswer(stream: stream) {
            queue { $0.appendFailure(stream: stream, failure, metadata: metadata) }
        }
        finished(stream: stream)
    }

    /// Tells the protocol state that a call is over. A call that `run` carries is over when its task ends, every other
    /// call when it is answered.
    private func finished(stream: UInt32) {
        if calls[stream] == nil { perform(state.finished(stream: stream)) }
    }

    static let answerTooLarge = Failure(
        .answerTooLarge, "The answer is above the frame size you announced; ask for less.")

    // MARK: Writing

    private func markDirty() {
        guard !isDirty else { return }
        isDirty = true
        loop.atEndOfTurn(self)
    }

    func flushAtEndOfTurn() {
        isDirty = false
        guard phase != .closed, !isWriteBlocked else { return }
        flush()
        // Reading was paused for output that the kernel has just taken whole: no event would come to resume it.
        if phase != .closed { resumeReadingIfDrained() }
        account()
    }

    func writable() {
        guard phase != .closed else { return }
        flush()
        if phase != .closed { resumeReadingIfDrained() }
        account()
    }

    private func flush() {
        while true {
            if output.isEmpty {
                if backlog.isEmpty { break }
                swap(&output, &backlog)
            }
            switch socket.write(output.readable) {
            case .bytes(let count):
                metrics.bytesSent.add(UInt64(count))
                output.consume(count)
                if isWriteBlocked { lastWriteProgressAt = .now }
            case .wouldBlock:
                if !isWriteBlocked {
                    isWriteBlocked = true
                    lastWriteProgressAt = .now
                    watch?.setWriting(true)
                    armTimer(now: lastWriteProgressAt)
                }
                return
            case .failed:
                closeNow()
                return
            }
        }
        if isWriteBlocked {
            isWriteBlocked = false
            watch?.setWriting(false)
        }
        output.releaseIfIdle(above: outputByteCountKept)
        backlog.releaseIfIdle()
        wakeSenders()
        closeIfNothingLeft()
    }

    // MARK: Closing

    /// Stops taking in frames, and closes when the output is sent.
    func beginClosing() {
        guard phase == .open || phase == .peerClosed else { return }
        phase = .closing
        // A stranger that reads a byte now and then would keep the connection as long as it likes.
        if !isAuthenticated { lingersUntil = Instant.now.advanced(by: limits.writeTimeout) }
        cancelAllCalls()
        closeIfNothingLeft()
        if phase != .closed { armTimer(now: .now) }
    }

    func closeIfNothingLeft() {
        guard pendingOutputByteCount == 0 else { return }
        switch phase {
        case .open, .lingering, .closed: break
        case .peerClosed: if calls.isEmpty { closeNow() }
        case .closing:
            // Closing with unread input would make the kernel reset the connection and our last words could be lost.
            phase = .lingering
            socket.closeForWriting()
            watch?.setReading(true)
            lingersUntil = Instant.now.advanced(by: .seconds(1))
            armTimer(now: .now)
        }
    }
}
