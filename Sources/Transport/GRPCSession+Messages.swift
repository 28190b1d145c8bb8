import Base
import HTTP2
import Wire

// Hands whole requests and messages to the connection, one by one.

extension GRPCSession {
    /// Releases the call or the message that was handed out: the connection has used it. Does nothing the second time.
    func releaseHandedOut() {
        guard let (stream, byteCount) = handedOut else { return }
        handedOut = nil
        unpacked.consume(unpacked.readableByteCount)
        unpacked.releaseIfIdle()
        if stream.id == 0 { return recycle(stream) }
        guard byteCount > 0, byteCount <= stream.input.readableByteCount else { return }
        stream.input.consume(byteCount)
        // What is counted is the bytes that wait.
        stream.input.releaseSpare(above: 4 * 1024)
        stream.inputSince = now
        inputByteCount -= byteCount
    }

    func dropInput(of stream: GRPCStream) {
        inputByteCount -= stream.input.readableByteCount
        stream.input.consume(stream.input.readableByteCount)
    }

    /// The next call to begin, or the next message of a stream; `none` after a refusal that took long.
    func nextWaiting(_ output: inout OutputQueue) -> SessionEvent? {
        while let next = waiting.first {
            let stream = next.stream
            guard stream.id == next.id, !stream.state.isClosed, !isClosed else {
                _ = waiting.popFirst()
                continue
            }
            if stream.state.work == .waiting {
                _ = waiting.popFirst()
                stream.isQueued = false
                if let event = beginCall(stream) { return event }
            } else {
                if let event = nextMessage(stream) { return event }
                stream.isDelivering = false
                _ = waiting.popFirst()
            }
            pump(&output)
            if wasLong { return SessionEvent.none }
        }
        return nil
    }

    /// Nil: the call was refused, or nobody waits for it.
    private func beginCall(_ stream: GRPCStream) -> SessionEvent? {
        if stream.headers.asksForPage { return askForPage(stream) }
        guard let names = stream.headers.names else { return nil }
        guard let timeout = stream.timeoutLeft(now: now) else { return refuseCall(stream, .deadlinePassedBefore) }
        var payload = UnsafeRawBufferPointer(start: nil, count: 0)
        // The messages of an open stream follow later. A dropped request is a request to an unknown method.
        if stream.kind != .remoteOpen, stream.state.request == .ended {
            switch message(of: stream) {
            case .success(let found): payload = found
            case .failure(let failure): return refuseCall(stream, failure)
            }
            guard handedOut?.byteCount == stream.input.readableByteCount else {
                return refuseCall(stream, .moreThanOneMessage)
            }
        }
        guard stream.state.begin() else {
            releaseHandedOut()
            return nil
        }
        if handedOut == nil { handedOut = (stream, 0) }
        // The client may have sent messages, or ended the stream, before the call began.
        if stream.kind == .remoteOpen, !stream.input.isEmpty || stream.state.request == .ended { deliver(stream) }
        request = RequestEnvelope(
            service: names.service, method: names.method, payload: payload, timeoutNanoseconds: timeout,
            metadata: stream.headers.metadata)
        return .begin(stream: stream.id, kind: stream.kind)
    }

    /// Refuses a call that has not begun. Always returns nil, as `beginCall` does for such a call.
    private func refuseCall(_ stream: GRPCStream, _ failure: Failure) -> SessionEvent? {
        releaseHandedOut()
        refuse(stream, failure)
        return nil
    }

    /// The next message of an open stream, or its end. Nil: the rest has not come.
    private func nextMessage(_ stream: GRPCStream) -> SessionEvent? {
        guard stream.state.wantsAnswer else {
            dropInput(of: stream)
            return nil
        }
        let isWhole = stream.declaredByteCount.map {
            stream.input.readableByteCount >= GRPCMessage.prefixByteCount + $0
        }
        if isWhole == true {
            switch message(of: stream) {
            case .success(let payload):
                stream.deliveredCosts.append(handedOut?.byteCount ?? 0)
                return .message(stream: stream.id, payload, isLast: false)
            case .failure(let failure): return failRunning(stream, failure)
            }
        }
        guard stream.state.request == .ended else { return nil }
        if !stream.input.isEmpty { return failRunning(stream, .cutMessage) }
        stream.isDelivering = false
        _ = waiting.popFirst()
        return .remoteClosed(stream: stream.id)
    }

    /// Ends a running call because its client sent a faulty message.
    private func failRunning(_ stream: GRPCStream, _ failure: Failure) -> SessionEvent {
        releaseHandedOut()
        metrics.framesRefused.add()
        stream.isDelivering = false
        _ = waiting.popFirst()
        answerFailure(stream, GRPCStatus(failure, requestID: stream.headers.requestID))
        dropInput(of: stream)
        return .cancel(stream: stream.id)
    }

    /// The content of the message at the front of a stream's input; a failure if the message is missing, cut or faulty.
    private func message(of stream: GRPCStream) -> Result<UnsafeRawBufferPointer, Failure> {
        let bytes = stream.input.readable
        guard !bytes.isEmpty else { return .failure(.withoutMessage) }
        guard let declared = stream.declaredByteCount, bytes.count >= GRPCMessage.prefixByteCount + declared else {
            return .failure(.cutMessage)
        }
        guard declared <= messageMax else { return .failure(.messageTooLarge) }
        let end = GRPCMessage.prefixByteCount + declared
        let content = UnsafeRawBufferPointer(rebasing: bytes[GRPCMessage.prefixByteCount..<end])
        handedOut = (stream, end)
        switch bytes[0] {
        case 0: return .success(content)
        case 1 where stream.headers.encoding == .gzip: return unpack(content)
        default: return .failure(.unexpectedCompression)
        }
    }

    private func unpack(_ content: UnsafeRawBufferPointer) -> Result<UnsafeRawBufferPointer, Failure> {
        wasLong = true
        do throws(Gunzip.GunzipError) {
            try Gunzip.unpack(content, into: &unpacked, byteCountMax: messageMax)
            return .success(unpacked.readable)
        } catch .tooLarge {
            return .failure(.messageTooLarge)
        } catch {
            return .failure(.malformedGzip)
        }
    }

    /// Refuses the message that is coming in, and with it the call.
    func refuseMessage(_ stream: GRPCStream) {
        guard stream.state.work == .running else { return refuse(stream, .messageTooLarge) }
        metrics.framesRefused.add()
        answerFailure(stream, GRPCStatus(.messageTooLarge, requestID: stream.headers.requestID))
        notices.append(.cancel(stream.id))
    }
}

extension Failure {
    static let malformedPath = Failure(
        .unknownMethod, "The path is not /service/method; reflection lists those there are.")
    static let withoutMessage = Failure(.wrongMethodShape, "The method takes one message, and none came.")
    static let moreThanOneMessage = Failure(.wrongMethodShape, "The method takes one message, and more came.")
    static let cutMessage = Failure(.malformedEnvelope, "The last message ends before its length.")
    static let malformedGzip = Failure(
        .malformedEnvelope,
        "A message that is marked as compressed is not gzip, or has far more blocks than a compressor makes.")
    static let unknownEncoding = Failure(
        .malformedEnvelope, as: .unimplemented, "Messages are taken as they are, or compressed with gzip.")
    /// gRPC's compression.md wants INTERNAL for a compressed message of a request that names no compression.
    static let unexpectedCompression = Failure(
        .malformedEnvelope, as: .internal, "A message's first byte is 0, or 1 if the request has grpc-encoding: gzip.")
    static let messageTooLarge = Failure(.frameTooLarge, "The message is above the limit of this connection.")
    static let requestTimeout = Failure(.deadlineExceeded, "The request did not come whole in time; nothing was done.")
    static let messageTimeout = Failure(
        .deadlineExceeded, "The rest of a message of the stream did not come in time.")
    static let deadlinePassedBefore = Failure(
        .deadlineExceeded, "The deadline had passed before the call began; nothing was done.")
}
