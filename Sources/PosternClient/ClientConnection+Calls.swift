import Base
import Messages
import Wire

// The calls on a connection: the room for them, and the way of their messages into the output.

extension ClientConnection {
    /// The silence after which the connection is tried with a PING. Nil: it is not tried.
    var silenceMax: Duration? {
        guard let keepalive = options.keepalive, options.keepaliveWithoutCalls || !calls.isEmpty else { return nil }
        return calls.impatientSince == nil ? keepalive : min(keepalive, options.callPatience)
    }

    /// The time until which the PING that was sent then must be answered. A call that began later gives the server time
    /// from its own beginning on.
    func pingDeadline(sent: Instant) -> Instant {
        let usual = sent.advanced(by: options.keepaliveTimeout)
        guard let since = calls.impatientSince else { return usual }
        return min(usual, max(sent, since).advanced(by: options.callPatience))
    }

    /// Whether `open` would find room.
    func hasRoom(for kind: StreamKind) -> Bool {
        guard isOpen, !isLeaving, hasSpace, state.streamsInFlight < placesMax else { return false }
        return kind == .unary || !isFullOfStreams
    }

    /// Whether no further stream may be opened here. Streams may stay for as long as the application runs, so a quarter
    /// of the places, 64 at most, is kept for calls that end by themselves.
    var isFullOfStreams: Bool { calls.all.count { $0.kind != .unary } >= placesMax - min(placesMax / 4, 64) }

    private var placesMax: Int { min(state.streamsMax, learnedPlaces.count) }

    private var hasSpace: Bool { sending.readableByteCount + queued.readableByteCount < Self.unsentByteCountMax }

    /// Sends a call's REQUEST. False: the call cannot be sent now, and is unchanged.
    func open(_ call: Call, now: Instant) -> Bool {
        let stream: UInt32
        do {
            stream = try state.openStream(call.kind)
        } catch {
            if error == .connectionSpent { isLeaving = true }
            return false
        }
        let timeout = call.deadline == .distantFuture ? 0 : max(1, call.deadline.nanoseconds(since: now))
        let options = call.options
        let isSent = withOptionalBytes(options.authorization) { authorization in
            options.requestID.bytes.withUnsafeBytes { requestID in
                options.idempotencyKey.bytes.withUnsafeBytes { idempotencyKey in
                    options.traceparent.bytes.withUnsafeBytes { traceparent in
                        var metadata = OutgoingMetadata(
                            authorization: authorization, traceparent: traceparent.isEmpty ? nil : traceparent,
                            requestID: requestID.isEmpty ? nil : requestID,
                            idempotencyKey: idempotencyKey.isEmpty ? nil : idempotencyKey)
                        addFreshness(options, to: &metadata)
                        return queued.appendRequest(
                            stream: stream, kind: call.kind, service: call.service, method: call.method,
                            timeoutNanoseconds: timeout, metadata: metadata, payloadMax: state.peerPayloadMax
                        ) { call.request?.encode(into: &$0) }
                    }
                }
            }
        }
        guard isSent else {
            // The id stays unused: ids need only increase.
            _ = state.cancel(stream: stream, .cancelled)
            if isWelcomed { call.fail(.messageTooLarge) }
            return isWelcomed
        }
        calls.insert(call, stream, now: now)
        call.placement = .open(self, stream: stream)
        call.requestSent?.succeed(())
        call.requestSent = nil
        drainOutbox(of: call)
        return true
    }

    /// Adds how much of the journal a server of a cluster must have seen before it answers.
    private func addFreshness(_ call: CallOptions, to metadata: inout OutgoingMetadata) {
        if call.readsLatest {
            metadata.others.append(OutgoingMetadata.Entry(key: "x-postern-consistency", value: "latest"))
        } else if options.readsOwnWrites {
            let position = journal.position
            if position.isEmpty { return }
            metadata.others.append(OutgoingMetadata.Entry(key: "x-postern-position", value: position))
        }
    }

    /// Gives up a call: tells the server, and fails the call.
    func cancel(stream: UInt32, _ code: WireCode, _ failure: Failure) {
        state.cancel(stream: stream, code)?.append(to: &queued)
        calls.remove(stream)?.fail(failure)
    }

    func consumed(stream: UInt32, payloadByteCount: Int) {
        state.consumed(stream: stream, payloadByteCount: payloadByteCount)?.append(to: &queued)
    }

    /// Sends messages that wait for the stream's window, as far as the window allows.
    func drainOutbox(of call: Call) {
        guard case .open(_, let stream) = call.placement, call.kind == .remoteOpen else { return }
        var sentCount = 0
        for outgoing in call.outbox {
            guard hasSpace, state.maySendData(stream: stream) else { break }
            let before = queued.readableByteCount
            let fits = queued.appendData(stream: stream, payloadMax: state.peerPayloadMax) {
                outgoing.message.encode(into: &$0)
            }
            // Before the answer to HELLO, only small messages are sent: the others wait for the answer.
            if !fits, !isWelcomed { break }
            sentCount += 1
            if fits {
                let byteCount = queued.readableByteCount - before - FrameHeader.byteCount
                state.sentData(stream: stream, payloadByteCount: byteCount)
                call.hasSentMessages = true
                outgoing.sent.succeed(())
            } else {
                outgoing.sent.fail(Failure.messageTooLarge)
            }
        }
        call.outbox.removeFirst(sentCount)
        if call.isFinishing, !call.hasSentEnd, call.outbox.isEmpty {
            call.hasSentEnd = true
            queued.appendDataEnd(stream: stream)
            state.closedSending(stream: stream)
        }
    }

    /// Sends messages that wait for the server to read. Called after `flush`.
    func resumeOutboxes() {
        guard isOpen, hasSpace else { return }
        for call in calls.all where !call.outbox.isEmpty { drainOutbox(of: call) }
    }

    private func withOptionalBytes<Result>(
        _ secret: Secret?, _ body: (UnsafeRawBufferPointer?) -> Result
    ) -> Result {
        secret?.withBytes { body($0) } ?? body(nil)
    }
}
