public import Base
import Reactor
public import Wire

extension Connection {
    /// The output memory that a connection keeps between bursts: more for answers to requests that come one after the
    /// other, less while a stream waits for news, perhaps for hours. Zero while memory is tight.
    private var outputByteCountKept: Int {
        if share.memory.pressure != .none { return 0 }
        return calls.isEmpty ? 16 * 1024 : 4 * 1024
    }

    /// Sends the answer of a unary call, its last frame. `write` appends the response message, and is not called if
    /// nobody waits for the answer any more. If `write` throws, the call is not answered yet.
    public func respond(
        stream: UInt32, metadata: OutgoingMetadata, _ write: (inout ByteBuffer) throws -> Void
    ) rethrows {
        guard phase != .closed else { return }
        let session = session
        if session.wantsAnswer(stream: stream) {
            let isSent = try session.appendResponse(
                stream: stream, metadata: metadata, output: &output, write: write)
            if !isSent {
                session.appendFailure(stream: stream, Self.answerTooLarge, metadata: metadata, output: &output)
            }
            markDirty()
        }
        finished(stream: stream, in: session)
    }

    /// Sends the failure of a call, its last frame.
    public func fail(stream: UInt32, _ failure: Failure, metadata: OutgoingMetadata = OutgoingMetadata()) {
        guard phase != .closed else { return }
        let session = session
        if session.wantsAnswer(stream: stream) {
            session.appendFailure(stream: stream, failure, metadata: metadata, output: &output)
            markDirty()
        }
        finished(stream: stream, in: session)
    }

    /// Sends a page that the client asked for. `page` is nil if there is no page at that path.
    func answer(stream: UInt32, page: HTTPResponse?) {
        guard phase != .closed else { return }
        let session = session
        if session.wantsAnswer(stream: stream) {
            session.appendPage(stream: stream, page, output: &output)
            markDirty()
        }
        finished(stream: stream, in: session)
    }

    /// Tells the protocol state that a call is over. A call that `run` carries is over when its task ends, every other
    /// call when it is answered.
    private func finished(stream: UInt32, in session: any ProtocolSession) {
        if calls.isEmpty || calls[stream] == nil { perform(session.finished(stream: stream, output: &output)) }
    }

    static let answerTooLarge = Failure(
        .answerTooLarge, "The answer is above the frame size you announced; ask for less.")

    // MARK: Writing

    /// Schedules the output to be sent at the end of the turn.
    func markDirty() {
        guard !isDirty, phase != .closed else { return }
        isDirty = true
        loop.atEndOfTurn(self)
    }

    func flushAtEndOfTurn() {
        isDirty = false
        guard phase != .closed, stage == .open, !output.isBlocked else { return }
        flush()
        // Reading may be paused because of output that the kernel has just taken whole: no event would come to resume
        // it.
        if phase != .closed { resumeReadingIfDrained() }
        // Answers may wait for the client's window for a limited time only.
        if session.pendingByteCount > 0 { armTimer(now: .now) }
        account()
    }

    func writable() {
        guard phase != .closed else { return }
        unblockRead()
        guard phase != .closed, stage == .open else { return }
        flush()
        if phase != .closed { resumeReadingIfDrained() }
        account()
        // The timer that looks again was set to something else while the output waited.
        if phase != .closed, readingPausedSince != nil { armTimer(now: .now) }
    }

    private func flush() {
        while !output.isEmpty {
            switch byteStream.write(output.next()) {
            case .bytes(let count):
                metrics.bytesSent.add(UInt64(count))
                output.consume(count)
                if output.isBlocked { lastWriteProgressAt = .now }
            case .wouldBlock, .wouldBlockWriting:
                if !output.isBlocked {
                    output.isBlocked = true
                    lastWriteProgressAt = .now
                    watch?.setWriting(true)
                    armTimer(now: lastWriteProgressAt)
                }
                return
            case .refused, .failed:
                closeNow()
                return
            }
        }
        if output.isBlocked {
            output.isBlocked = false
            watch?.setWriting(isReadBlockedByWrite)
        }
        output.releaseIfIdle(above: outputByteCountKept)
        wakeSenders()
        closeIfNothingLeft()
    }

    // MARK: Closing

    /// Stops taking in frames, and closes when the output is sent.
    func beginClosing() {
        guard phase.isServing else { return }
        // No frame can be sent yet.
        guard stage == .open else { return closeNow() }
        phase = .closing
        // Without this limit, a stranger that reads a byte now and then could keep the connection for as long as it
        // likes.
        if !isAuthenticated { lingersUntil = Instant.now.advanced(by: limits.writeTimeout) }
        cancelAllCalls()
        if !isDecoding { input = ByteBuffer() }
        isBehind = false
        readingPausedSince = nil
        closeIfNothingLeft()
        if phase != .closed { armTimer(now: .now) }
    }

    func closeIfNothingLeft() {
        guard output.isEmpty else { return }
        switch phase {
        case .open, .lingering, .closed: break
        // Input that waits for its turn may hold a call.
        case .peerClosed:
            if calls.isEmpty, !isReadDue, readingPausedSince == nil, !session.hasWaitingCalls { closeNow() }
        case .closing:
            // Closing with unread input would make the kernel reset the connection, and the last frames could be lost.
            linger()
        }
    }

    /// Gives the peer a second to read the last bytes and to close first.
    func linger() {
        phase = .lingering
        byteStream.closeForWriting()
        watch?.setReading(true)
        let now = Instant.now
        lingersUntil = now.advanced(by: .seconds(1))
        armTimer(now: now)
    }
}
