// The code that the fuzzer runs and the test replays: bytes as a peer may send them go through everything that reads
// them before a handler does. Nothing may trap, and bytes that two readers both accept must read alike.

import Base
import Messages
import Wire

/// One input. Its first byte chooses the pieces the rest arrives in (1...32 bytes, or all) and whether the connection
/// has opened with HELLO and is authenticated.
func fuzzFrames(_ input: UnsafeRawBufferPointer) {
    guard let options = input.first else { return }
    let bytes = UnsafeRawBufferPointer(rebasing: input[1...])
    FuzzedServer(options: options).run(bytes)
    FuzzedClient(options: options).run(bytes)
    bytes.withRequest { compareRequest($0) }
    compareResponse(bytes)
    roundTrip(bytes)
}

private let limits = Limits()

/// Feeds `bytes` to a decoder in pieces and hands out its steps; stops when `step` says so.
private func decode(
    _ bytes: UnsafeRawBufferPointer, options: UInt8, payloadMax: () -> Int,
    step: (FrameDecoder.Step) -> Bool
) {
    let pieceByteCount = options & 0x3F == 0 ? max(bytes.count, 1) : Int(options & 0x1F) + 1
    var decoder = FrameDecoder(payloadHardMax: limits.framePayloadHardMax)
    var input = ByteBuffer()
    var position = 0
    while true {
        let next = decoder.next(in: &input, payloadMax: payloadMax(), now: Instant(nanoseconds: Int64(position)))
        guard case .needMore(let byteCountWanted) = next else {
            guard step(next) else { return }
            continue
        }
        precondition(byteCountWanted > 0, "a decoder that wants nothing")
        precondition((decoder.partialSince == nil) || position > 0, "a partial frame of no bytes")
        guard position < bytes.count else { return }
        let end = min(position + pieceByteCount, bytes.count)
        input.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[position..<end]))
        position = end
    }
}

/// A server connection that answers nothing and finishes every second stream at once.
private struct FuzzedServer {
    let options: UInt8

    func run(_ bytes: UnsafeRawBufferPointer) {
        var state = ConnectionState(limits: SharedLimits(limits), software: "fuzz")
        var output = ByteBuffer()
        var running: Set<UInt32> = []
        if options & 0x40 != 0 { Self.greet(&state) }
        if options & 0x80 != 0 { state.authenticated() }
        decode(bytes, options: options, payloadMax: { state.payloadMax }) { step in
            let action: ConnectionAction
            var envelope: UnsafeRawBufferPointer?
            switch step {
            case .needMore: return true
            case .frame(let header, let payload):
                action = state.received(header, payload: payload, now: Instant(nanoseconds: 0))
                envelope = payload
            case .oversized(let header): action = state.receivedOversized(header, now: Instant(nanoseconds: 0))
            case .violation: action = state.violated(.frameAboveHardCap)
            }
            perform(action, envelope, &state, &running, &output)
            precondition(state.streamsInFlight == running.count && running.count <= state.streamsMax)
            output.consume(output.readableByteCount)
            return !state.isClosed
        }
    }

    private static func greet(_ state: inout ConnectionState) {
        let hello = WireHello(protocolVersion: 1).encoded()
        hello.withUnsafeBytes { raw in
            let header = FrameHeader(payloadByteCount: UInt32(raw.count), stream: 0, type: .hello)
            precondition(state.received(header, payload: raw, now: Instant(nanoseconds: 0)) == .welcome)
        }
    }

    private func perform(
        _ action: ConnectionAction, _ envelope: UnsafeRawBufferPointer?, _ state: inout ConnectionState,
        _ running: inout Set<UInt32>, _ output: inout ByteBuffer
    ) {
        switch action {
        case .none, .remoteClosed, .pingAcknowledged: break
        case .welcome: output.appendHello(state.hello)
        case .startRequest(let stream, let kind):
            precondition(running.insert(stream).inserted, "stream \(stream) started twice")
            if let envelope { compareRequest(envelope) }
            guard kind == .unary, stream & 2 == 0 else { return }
            precondition(state.wantsAnswer(stream: stream))
            _ = state.finished(stream: stream)
            running.remove(stream)
        case .data(let stream, _):
            precondition(running.contains(stream))
            if case .reply(let frame) = state.consumed(stream: stream, payloadByteCount: envelope?.count ?? 0) {
                frame.append(to: &output)
            }
        case .cancel(let stream, _), .failStream(let stream, _):
            precondition(running.contains(stream) && !state.wantsAnswer(stream: stream))
            if case .failStream(_, let error) = action { output.appendFailure(stream: stream, error.failure) }
            guard stream & 4 == 0 else { return }
            _ = state.finished(stream: stream)
            running.remove(stream)
        case .respondFailure(let stream, let error):
            precondition(!running.contains(stream), "an answer for a stream that has its own")
            output.appendFailure(stream: stream, error.failure)
        case .sendWindowOpened(let stream):
            precondition(state.maySendData(stream: stream))
            state.sentData(stream: stream, payloadByteCount: 70_000)
        case .reply(let frame): frame.append(to: &output)
        case .pong(let opaque): ControlFrame.ping(opaque, ack: true).append(to: &output)
        case .close(_, let farewell):
            precondition(state.isClosed)
            farewell?.append(to: &output)
        }
    }
}

/// A client connection with a stream of each kind in flight.
private struct FuzzedClient {
    let options: UInt8

    func run(_ bytes: UnsafeRawBufferPointer) {
        var state = ClientConnectionState(limits: limits, software: "fuzz", usingExtensions: options & 0x40 == 0)
        for kind in StreamKind.allCases { _ = try? state.openStream(kind) }
        decode(bytes, options: options, payloadMax: { limits.framePayloadHardMax }) { step in
            guard case .frame(let header, let payload) = step else { return false }
            let action = state.received(header, payload: payload)
            switch action {
            case .response: compareResponse(payload)
            case .data(let stream, _): _ = state.consumed(stream: stream, payloadByteCount: payload.count)
            case .close: precondition(state.isClosed)
            default: break
            }
            for stream in [1, 3, 5] as [UInt32] where state.maySendData(stream: stream) {
                state.sentData(stream: stream, payloadByteCount: 1_000)
            }
            return !state.isClosed
        }
        precondition(state.connectionLost().count <= 3)
    }
}

extension UnsafeRawBufferPointer {
    /// Runs `body` with the bytes as an envelope of their own, since most mutations of a frame break its header first.
    fileprivate func withRequest(_ body: (UnsafeRawBufferPointer) -> Void) {
        body(self)
        if count > FrameHeader.byteCount { body(UnsafeRawBufferPointer(rebasing: self[FrameHeader.byteCount...])) }
    }
}

/// Compares our reader with the generated one: what both accept must be the same, and only ours may be stricter.
private func compareRequest(_ bytes: UnsafeRawBufferPointer) {
    guard let envelope = try? RequestEnvelope(reading: bytes, limits: limits.messages) else { return }
    guard let message = accepted(WireRequest.self, bytes) else { return }
    precondition(message.service.bytes.elementsEqual(envelope.service), "service differs")
    precondition(message.method.bytes.elementsEqual(envelope.method), "method differs")
    precondition(message.payload.elementsEqual(envelope.payload), "payload differs")
    precondition(message.timeoutNano == envelope.timeoutNanoseconds, "timeout differs")
    compareMetadata(message.metadata, envelope.metadata)
    rewrite(message, envelope)
    unpack(envelope.payload)
}

private func compareResponse(_ bytes: UnsafeRawBufferPointer) {
    guard let envelope = try? ResponseEnvelope(reading: bytes, limits: limits.messages) else { return }
    do throws(DecodeError) {
        let message = try WireResponse(decoding: bytes, limits: limits.messages)
        precondition(message.payload.elementsEqual(envelope.payload), "payload differs")
        precondition((message.status == nil) == (envelope.status == nil), "status differs")
        compareMetadata(message.metadata, envelope.metadata)
    } catch {
        // The envelope does not look into the status, which may be anything.
        precondition(envelope.status != nil || error.isLimit, "only one reader accepts a response")
    }
}

private func compareMetadata(_ entries: [WireKeyValue], _ metadata: Metadata) {
    precondition(entries.count == metadata.count, "the number of entries differs")
    for (entry, read) in zip(entries, metadata) {
        precondition(entry.key.bytes.elementsEqual(read.key), "key differs")
        precondition(entry.value.bytes.elementsEqual(read.value), "value differs")
        let first = entry.key.bytes.withUnsafeBytes { metadata.first($0) }
        precondition(first != nil, "an entry is not found by its key")
    }
    for (key, value) in [
        ("authorization", metadata.authorization), ("traceparent", metadata.traceparent),
        ("x-request-id", metadata.requestID), ("idempotency-key", metadata.idempotencyKey),
    ] as [(Text, UnsafeRawBufferPointer?)] {
        let found = entries.first { $0.key == key }
        precondition(found.map { $0.value.bytes } == value.map { [UInt8]($0) }, "\(key) differs")
    }
}

/// Writes what was read, which must then be read as the same.
private func rewrite(_ message: WireRequest, _ envelope: RequestEnvelope) {
    var output = ByteBuffer()
    let known: Set<Text> = ["authorization", "traceparent", "x-request-id", "idempotency-key"]
    let others = message.metadata.filter { !known.contains($0.key) }
    let metadata = OutgoingMetadata(
        authorization: envelope.metadata.authorization, traceparent: envelope.metadata.traceparent,
        requestID: envelope.metadata.requestID, idempotencyKey: envelope.metadata.idempotencyKey,
        others: others.map { OutgoingMetadata.Entry(key: $0.key, value: $0.value) })
    output.appendRequest(
        stream: 1, service: message.service, method: message.method, timeoutNanoseconds: message.timeoutNano,
        metadata: metadata
    ) { $0.append(contentsOf: envelope.payload) }
    let written = UnsafeRawBufferPointer(rebasing: output.readable[FrameHeader.byteCount...])
    guard let again = try? WireRequest(decoding: written, limits: limits.messages) else {
        preconditionFailure("what was written does not read")
    }
    precondition(again.service == message.service && again.method == message.method, "names differ when written")
    precondition(again.payload == message.payload, "payload differs when written")
    precondition(again.timeoutNano == message.timeoutNano, "timeout differs when written")
    precondition(again.metadata.count == message.metadata.count, "metadata differs when written")
    precondition(again.metadata.filter { !known.contains($0.key) } == others, "metadata differs when written")
}

/// Reads the input as each of a few messages: pre-scan and unpack. An accepted message survives being encoded.
private func unpack(_ bytes: UnsafeRawBufferPointer) {
    survives(AccountsSignUpRequest.self, bytes)
    survives(UsersImportRequest.self, bytes)
    survives(TenantsUpdateRequest.self, bytes)
    survives(GoogleStatus.self, bytes)
}

private func roundTrip(_ bytes: UnsafeRawBufferPointer) {
    survives(WireHello.self, bytes)
    survives(WireGoAway.self, bytes)
    survives(WireRequest.self, bytes)
    survives(WireResponse.self, bytes)
    unpack(bytes)
}

private func survives<Value: Message>(_ type: Value.Type, _ bytes: UnsafeRawBufferPointer) {
    guard let message = try? Value(decoding: bytes, limits: limits.messages) else { return }
    let encoded = message.encoded()
    precondition(encoded.count == message.encodedByteCount, "\(type) is not as long as it says")
    do throws(DecodeError) {
        let again = try Value(decoding: encoded, limits: limits.messages)
        precondition(again == message, "\(type) changes when encoded")
    } catch {
        preconditionFailure("\(type) does not read what it wrote: \(error)")
    }
}

/// The decoded message, nil when refused for a limit: the two readers count fields differently.
private func accepted<Value: Message>(_ type: Value.Type, _ bytes: UnsafeRawBufferPointer) -> Value? {
    do throws(DecodeError) {
        return try Value(decoding: bytes, limits: limits.messages)
    } catch {
        precondition(error.isLimit, "only our reader accepts a \(type): \(error)")
        return nil
    }
}

extension DecodeError {
    fileprivate var isLimit: Bool {
        switch self {
        case .limit, .budget: true
        default: false
        }
    }
}
