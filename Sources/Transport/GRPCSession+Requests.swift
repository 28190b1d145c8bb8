import Base
import HTTP2
import Wire

// Takes requests in: nghttp2 calls these functions while it reads, and the connection then asks for the events that are
// ready.

extension GRPCSession {
    func headersBegan(stream id: UInt32, isFirst: Bool) {
        headersOf = nil
        blockFieldsByteCount = 0
        // The trailers of a request are ignored.
        guard isFirst, !isClosed else { return }
        guard streams.count < streamsMax, !isRefusing else {
            metrics.framesRefused.add()
            return refuseStream(id)
        }
        headersOf = makeStream(id)
    }

    /// The call was not begun and is safe to send again.
    private func refuseStream(_ id: UInt32) {
        engine.reset(stream: id, .refusedStream)
        noteCancel()
    }

    /// nghttp2 refused a request. It does so as long as the client has not acknowledged the maximum of streams.
    func refused() {
        metrics.framesRefused.add()
        noteCancel()
    }

    /// Counts a request that the client cancelled, or that was refused.
    private func noteCancel() {
        if !cancelRate.note(at: now) { violation = .tooManyCancels }
    }

    /// A byte of a header block can stand for thousands of bytes of an earlier field (RFC 7541, 2.3). So the unpacking
    /// of a block stops far above the announced maximum, also for a stream that was refused.
    func header(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool {
        blockFieldsByteCount += name.count + value.count + 32
        guard blockFieldsByteCount <= 2 * limits.headerListMax else {
            violation = .headersTooLarge
            return false
        }
        if let stream = headersOf {
            let capacity = stream.headers.capacity
            stream.headers.add(name, value, limits: limits)
            headersByteCount += stream.headers.capacity - capacity
        }
        return true
    }

    func headersEnded(stream id: UInt32, isLast: Bool) {
        guard let stream = headersOf else {
            if isLast { remoteEnded(stream: id) }
            return
        }
        headersOf = nil
        hasSeenRequest = true
        if refuseForHeaders(stream) { return }
        // A page waits for its turn as a call does.
        if stream.headers.asksForPage { return perform(stream.state.headersEnded(nil, isLast: isLast), stream) }
        guard let (service, method) = stream.headers.names else { return refuse(stream, .malformedPath) }
        let kind = methods.kind(service: service, method: method)
        stream.kind = kind ?? .unary
        if stream.kind == .remoteOpen { openStreams += 1 }
        perform(stream.state.headersEnded(kind, isLast: isLast), stream)
        if stream.state.request == .message { incomplete.append(stream) }
    }

    /// Refuses a request whose headers are at fault. Returns false, and does nothing, if they are sound.
    private func refuseForHeaders(_ stream: GRPCStream) -> Bool {
        let asksForPage = stream.headers.asksForPage
        if let fault = stream.headers.fault {
            if asksForPage {
                refuse(stream, httpStatus: fault == .metadataTooLarge ? "431" : "400")
            } else {
                refuse(stream, fault.failure)
            }
        } else if asksForPage {
            return false
        } else if stream.headers.method != .post {
            refuse(stream, httpStatus: "405", allow: "POST")
        } else if !stream.headers.isGRPC {
            refuse(stream, httpStatus: "415")
        } else if stream.headers.encoding == .unknown {
            refuse(stream, .unknownEncoding)
        } else {
            return false
        }
        return true
    }

    func data(_ bytes: UnsafeRawBufferPointer, stream id: UInt32) {
        // The streams' own windows bound what all streams hold together.
        engine.consumeOfConnection(bytes.count)
        guard let stream = streams[id], stream.state.takesData else {
            return engine.consume(bytes.count, stream: id)
        }
        if stream.input.isEmpty { stream.inputSince = now }
        stream.input.append(contentsOf: bytes)
        stream.uncredited += bytes.count
        inputByteCount += bytes.count
        checkLength(stream)
    }

    func remoteEnded(stream id: UInt32) {
        guard let stream = streams[id] else { return }
        perform(stream.state.remoteEnded(), stream)
    }

    func reset(stream id: UInt32) {
        // A reset after the answer cancels nothing.
        guard let stream = streams[id], stream.state.answer != .ended, !stream.hasNotedCancel else { return }
        stream.hasNotedCancel = true
        noteCancel()
    }

    func closed(stream id: UInt32) {
        guard let stream = streams[id] else { return }
        if headersOf === stream { headersOf = nil }
        // Also counts a stream that HTTP/2 had to end because of what the client did with it.
        reset(stream: id)
        dropOutput(of: stream)
        perform(stream.state.closed(), stream)
    }

    private func perform(_ action: GRPCStreamState.Action, _ stream: GRPCStream) {
        switch action {
        case .none: break
        case .begin: begin(stream)
        case .deliver: deliver(stream)
        case .refuseWithoutMessage: refuse(stream, .withoutMessage)
        case .cancel: notices.append(.cancel(stream.id))
        case .forget: forget(stream)
        }
    }

    private func begin(_ stream: GRPCStream) {
        if !incomplete.isEmpty { incomplete.removeAll { $0 === stream } }
        if largeStream === stream { largeEnded() }
        stream.isQueued = true
        waiting.append(Waiting(stream: stream, id: stream.id))
    }

    /// Queues the stream, so that its messages are handed out in their turn.
    func deliver(_ stream: GRPCStream) {
        guard !stream.isDelivering, stream.kind == .remoteOpen else { return }
        stream.isDelivering = true
        waiting.append(Waiting(stream: stream, id: stream.id))
    }

    // MARK: Windows

    /// Checks the message that is coming in: refuses it if it is too long, and lets the client send the rest if its
    /// window has no room for it.
    func checkLength(_ stream: GRPCStream) {
        guard let declared = stream.declaredByteCount else { return }
        guard declared <= messageMax else {
            let mayBeTaken = declared <= limits.framePayloadMax && stream.headers.authorization != nil
            guard mayBeTaken, !stream.hasPresented else { return refuseMessage(stream) }
            return notices.append(.present(stream, id: stream.id))
        }
        if stream.input.readableByteCount >= GRPCMessage.prefixByteCount + declared {
            if stream.kind == .remoteOpen { deliver(stream) }
            if largeStream === stream { largeEnded() }
        } else if largeStream === stream {
            credit(stream)
        } else if stream.uncredited >= initialWindow / 2 {
            guard largeStream == nil else { return waitToBeLarge(stream) }
            largeStream = stream
            credit(stream)
        }
    }

    private func waitToBeLarge(_ stream: GRPCStream) {
        guard !stream.isLargeWaiting else { return }
        stream.isLargeWaiting = true
        largeWaiting.append(Waiting(stream: stream, id: stream.id))
    }

    /// Only one message at a time may be larger than a window. So the sum of all messages is bounded, and no message
    /// waits for ever.
    func largeEnded() {
        largeStream = nil
        while largeStream == nil, let next = largeWaiting.popFirst() {
            next.stream.isLargeWaiting = false
            next.stream.inputSince = now
            if next.stream.id == next.id, next.stream.state.takesData { checkLength(next.stream) }
        }
    }

    private func credit(_ stream: GRPCStream) {
        engine.consume(stream.uncredited, stream: stream.id)
        stream.uncredited = 0
    }

    func consumed(stream id: UInt32, byteCount: Int, output: inout OutputQueue) {
        guard let stream = streams[id], let delivered = stream.deliveredCosts.popFirst() else { return }
        // Only now may the client send more.
        if stream.deliveredCosts.isEmpty { stream.inputSince = .now }
        let cost = min(delivered, stream.uncredited)
        guard cost > 0, !stream.state.isClosed else { return }
        stream.uncredited -= cost
        engine.consume(cost, stream: id)
        pump(&output)
    }
}
