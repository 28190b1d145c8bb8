import Base
import HTTP2
import Wire

// Answers on their way out. One message is written at a time, into the connection's own buffer; only what the client's
// windows hold back is kept with its stream.

extension GRPCSession {
    func wantsAnswer(stream id: UInt32) -> Bool {
        guard !isClosed, let stream = streams[id] else { return false }
        return stream.state.wantsAnswer
    }

    func appendResponse(
        stream id: UInt32, metadata: OutgoingMetadata, output: inout OutputQueue,
        write: (inout ByteBuffer) throws -> Void
    ) rethrows -> Bool {
        guard let stream = streams[id] else { return true }
        try writeMessage(write)
        addHeaders(requestID: metadata.requestID)
        if let position = metadata.position { engine.fields.add("x-postern-position", unique: position) }
        stream.state.answerEnded()
        engine.respond(stream: id, hasBody: true)
        sendAnswer(of: stream, &output)
        return true
    }

    func appendFailure(stream id: UInt32, _ failure: Failure, metadata: OutgoingMetadata, output: inout OutputQueue) {
        guard let stream = streams[id] else { return }
        let requestID = metadata.requestID ?? stream.headers.requestID
        answerFailure(stream, GRPCStatus(failure, requestID: requestID), requestID: requestID)
        pump(&output)
    }

    func maySendMessage(stream id: UInt32) -> Bool {
        guard let stream = streams[id] else { return false }
        if stream.output.isEmpty, engine.hasWindow(stream: id) { return true }
        isWindowAwaited = true
        return false
    }

    func appendProbe(output: inout OutputQueue) -> Bool {
        guard !isClosed else { return false }
        engine.ping(Self.probePing)
        pump(&output)
        return true
    }

    func windowOpened(stream id: UInt32) {
        guard isWindowAwaited else { return }
        if id == 0 { noteRoom() } else if streams[id] != nil { notices.append(.windowOpened(id)) }
    }

    /// Tells the connection that it may have room for any stream. It then looks at all of its streams, so that it is
    /// told once for many frames.
    private func noteRoom() {
        guard !isRoomNoted else { return }
        isRoomNoted = true
        notices.append(.windowOpened(0))
    }

    func appendMessage(
        stream id: UInt32, output: inout OutputQueue, write: (inout ByteBuffer) throws -> Bool
    ) rethrows -> Bool {
        guard let stream = streams[id] else { return true }
        var hasMessage = false
        try writeMessage { hasMessage = try write(&$0) }
        guard hasMessage else {
            answer.truncate(to: 0)
            return true
        }
        resumeAnswer(of: stream)
        sendAnswer(of: stream, &output)
        return true
    }

    func appendEnd(stream id: UInt32, output: inout OutputQueue) {
        guard let stream = streams[id] else { return }
        if stream.state.answer == .none { beginAnswer(of: stream) }
        stream.state.answerEnded()
        endBegunAnswer(of: stream)
        pump(&output)
    }

    /// Nothing to do: the client was told, and HTTP/2 has the answer already.
    func abandoned(stream: UInt32) {}

    func finished(stream id: UInt32, output: inout OutputQueue) -> SessionEvent {
        guard let stream = streams[id] else { return .none }
        if stream.state.finished() == .forget {
            let hadLarge = largeStream === stream
            forget(stream)
            // Another stream may send its large message now, and its client waits to be told.
            if hadLarge { pump(&output) }
        }
        return closeIfDone()
    }

    // MARK: Writing

    private func writeMessage(_ write: (inout ByteBuffer) throws -> Void) rethrows {
        answer.append(0)
        answer.append(bigEndian: 0)
        do {
            try write(&answer)
        } catch {
            answer.truncate(to: 0)
            throw error
        }
        let byteCount = answer.readableByteCount - GRPCMessage.prefixByteCount
        // Proof: no answer is above 4 GiB; pages and messages are bounded by `Limits`.
        answer.overwrite(bigEndian: UInt32(truncatingIfNeeded: byteCount), at: 1)
    }

    private func addHeaders(requestID: UnsafeRawBufferPointer?) {
        flood.sentHeaders()
        engine.fields.add(":status", "200")
        engine.fields.add("content-type", "application/grpc")
        engine.fields.add("grpc-accept-encoding", "identity,gzip")
        if let requestID { engine.fields.add("x-request-id", unique: requestID) }
    }

    /// Begins a stream's answer, or tells HTTP/2 that it goes on.
    private func resumeAnswer(of stream: GRPCStream) {
        if stream.state.answer == .none { beginAnswer(of: stream) } else { engine.resume(stream: stream.id) }
    }

    private func beginAnswer(of stream: GRPCStream) {
        addHeaders(requestID: stream.headers.requestID)
        stream.state.answerBegan()
        engine.respond(stream: stream.id, hasBody: true)
    }

    /// Sends the trailers: at once if no message waits for the client's windows, and otherwise after the last message.
    private func endBegunAnswer(of stream: GRPCStream) {
        noteHeld(stream)
        let hasBytes = !stream.output.isEmpty || answering === stream
        if hasBytes { engine.resume(stream: stream.id) } else { engine.endBody(stream: stream.id) }
    }

    /// Sends the content of `answer`, and keeps the part that the client has no window for.
    func sendAnswer(of stream: GRPCStream, _ output: inout OutputQueue) {
        if stream.output.isEmpty {
            answering = stream
            pump(&output)
            answering = nil
        }
        if !answer.isEmpty {
            let isHeld = !stream.output.isEmpty
            stream.output.append(contentsOf: answer.readable)
            addPending(answer.readableByteCount)
            answer.consume(answer.readableByteCount)
            if !isHeld { heldProgressAt = .now }
            noteHeld(stream)
        }
        answer.releaseIfIdle(above: 16 * 1024)
    }

    /// Answers a call with a failure, after the messages that were sent for it before.
    func answerFailure(_ stream: GRPCStream, _ status: GRPCStatus, requestID: UnsafeRawBufferPointer? = nil) {
        guard stream.state.answer != .ended, !stream.state.isClosed else { return }
        let isBegun = stream.state.answer == .begun
        stream.failure = status
        stream.state.answerEnded()
        dropInput(of: stream)
        if isBegun { return endBegunAnswer(of: stream) }
        addHeaders(requestID: requestID ?? stream.headers.requestID)
        status.add(to: engine.fields)
        engine.respond(stream: stream.id, hasBody: false)
    }

    /// Answers a request that never becomes a call.
    func refuse(_ stream: GRPCStream, _ failure: Failure) {
        metrics.framesRefused.add()
        answerFailure(stream, GRPCStatus(failure, requestID: stream.headers.requestID))
    }

    /// Answers a request that is not gRPC with an HTTP status.
    func refuse(_ stream: GRPCStream, httpStatus: StaticString, allow: StaticString? = nil) {
        metrics.framesRefused.add()
        engine.fields.add(":status", httpStatus)
        if let allow { engine.fields.add("allow", allow) }
        stream.state.answerEnded()
        engine.respond(stream: stream.id, hasBody: false)
    }

    /// Counts the answers that are whole and wait for the client's windows.
    private func noteHeld(_ stream: GRPCStream) {
        let isHeld = stream.state.answer == .ended && !stream.output.isEmpty
        guard isHeld != stream.isHeld else { return }
        // A message may have waited for any time while its stream was open. The client's time begins now.
        if isHeld, heldAnswers == 0 { heldProgressAt = .now }
        stream.isHeld = isHeld
        heldAnswers += isHeld ? 1 : -1
    }

    /// Drops the rest of an answer that nobody takes any more. Calls that waited until the client takes it may go on:
    /// otherwise the end of output tells them, and here none is sent.
    func dropOutput(of stream: GRPCStream) {
        guard !stream.output.isEmpty else { return }
        addPending(-stream.output.readableByteCount)
        stream.output.consume(stream.output.readableByteCount)
        noteHeld(stream)
        noteRoom()
    }

    func pump(_ output: inout OutputQueue) {
        guard !isClosed else { return }
        engine.send { bytes in output.append { $0.append(contentsOf: bytes) } }
    }

    func nextBytes(stream id: UInt32, into buffer: UnsafeMutableRawBufferPointer) -> HTTP2Body {
        guard let stream = streams[id] else { return .none }
        let count: Int
        let isEmpty: Bool
        if answering === stream {
            count = Self.move(from: &answer, into: buffer)
            isEmpty = answer.isEmpty
        } else {
            count = Self.move(from: &stream.output, into: buffer)
            stream.output.releaseSpare(above: 4 * 1024)
            isEmpty = stream.output.isEmpty
            addPending(-count)
            if count > 0 { heldProgressAt = now }
            noteHeld(stream)
        }
        if count > 0 { flood.sentData() }
        if isEmpty, stream.state.answer == .ended { return stream.isPage ? .last(count) : .lastBeforeTrailers(count) }
        return count > 0 ? .bytes(count) : .none
    }

    private static func move(from source: inout ByteBuffer, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(source.readableByteCount, buffer.count)
        buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: source.readable[..<count]))
        source.consume(count)
        return count
    }

    func addTrailers(stream id: UInt32, to fields: HTTP2Fields) {
        guard let failure = streams[id]?.failure else { return fields.add("grpc-status", "0") }
        failure.add(to: fields)
    }
}
