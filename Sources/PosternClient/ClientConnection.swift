import Base
import Glibc
import Messages
import Wire

/// One TCP connection of a channel: the shell around `ClientConnectionState` that reads, writes and settles calls.
///
/// Owned and run by the thread of the channel's loop. It never closes itself: `end` marks it as ended, and the
/// channel's core settles its calls.
///
/// This file has the connection and its bytes; ClientConnection+Calls.swift has the calls on it.
final class ClientConnection {
    enum Phase {
        /// Next: `handshake`, `open`, `ended`.
        case connecting
        /// TCP is connected, TLS is not. Next: `open`, `ended`.
        case handshake
        /// HELLO is on its way, requests may follow. Next: `ended`.
        case open
        /// Next: none.
        case ended(Failure)
    }

    private static let readByteCount = 64 * 1024
    /// Above this, calls and messages wait until the server reads.
    static let unsentByteCountMax = 1024 * 1024

    /// The last report about the connection to the load balancer.
    enum Standing {
        /// No report since the connection was begun. Next: `welcomed`.
        case begun
        /// Next: `lost`.
        case welcomed
        /// Next: none.
        case lost
    }

    /// The id of the endpoint that the connection leads to.
    let endpoint: Int
    var standing = Standing.begun
    /// The loop's key for the connection, and the events that the loop watches. Nil: the loop does not watch it.
    var watchKey: UInt64?
    var watchedEvents: Int16?
    private(set) var stream: ClientStream
    private(set) var phase: Phase
    /// The time by which the server must have answered.
    private let connectDeadline: Instant
    var state: ClientConnectionState
    let options: ChannelOptions
    let journal: JournalMemory
    private var decoder: FrameDecoder
    private var input = ByteBuffer()
    /// `sending` is being written and ends with a whole frame; `queued` comes after it. A PING is answered between the
    /// two.
    var sending = ByteBuffer()
    var queued = ByteBuffer()
    var calls = OpenCalls()
    /// Calls that the server gave back without having processed them.
    private(set) var unprocessed: [Call] = []
    /// The server's first frame came: its limits are known, and connecting to it again is worth the try.
    private(set) var isWelcomed = false
    /// GOAWAY came: calls in flight end here, new calls go elsewhere.
    var isLeaving = false
    /// The limit that the server's refusals tell: for unknown callers it is below the limit in its HELLO.
    var learnedPlaces = LearnedPlaces()
    private var lastReceived = Instant.now
    private var pingSent: Instant?

    init(
        to endpoint: Int, over socket: ClientSocket, tls: ClientTLS?, authorization: Text, options: ChannelOptions,
        journal: JournalMemory, now: Instant
    ) throws(Failure) {
        self.journal = journal
        self.endpoint = endpoint
        self.stream = try ClientStream(owning: socket, tls: tls)
        self.connectDeadline = now.advanced(by: options.connectTimeout)
        self.phase = .connecting
        self.options = options
        self.state = ClientConnectionState(
            limits: options.limits, software: options.software, authorization: authorization)
        self.decoder = FrameDecoder(payloadHardMax: options.limits.framePayloadHardMax)
    }

    var isOpen: Bool {
        if case .open = phase { true } else { false }
    }

    var isEnded: Bool {
        if case .ended = phase { true } else { false }
    }

    /// Nothing is in flight and nothing new will be.
    var isDone: Bool { isLeaving && calls.isEmpty }

    /// The calls that have no answer yet, with those that the server gave back in this turn.
    var unanswered: [Call] { calls.all + unprocessed }

    func takeUnprocessed() -> [Call] {
        defer { unprocessed = [] }
        return unprocessed
    }

    private func end(_ failure: Failure) {
        if case .ended = phase { return }
        phase = .ended(failure)
    }

    func cannotBeWatched(_ error: SystemError) {
        end(calls.isEmpty ? .connectionFailed("\(error)") : .connectionLost("\(error)"))
    }

    /// Closes the socket and returns the calls that have no answer: the server may or may not have processed them.
    func close() -> [Call] {
        end(.connectionLost("The connection was closed."))
        _ = state.connectionLost()
        stream.close()
        defer { calls.removeAll() }
        return calls.all + takeUnprocessed()
    }

    // Readiness

    var wantedEvents: Int16 {
        switch phase {
        case .connecting: Int16(POLLOUT)
        case .handshake: stream.isReadBlockedByWrite ? Int16(POLLOUT) : Int16(POLLIN)
        case .open:
            sending.isEmpty && !stream.isReadBlockedByWrite ? Int16(POLLIN) : Int16(POLLIN | POLLOUT)
        case .ended: 0
        }
    }

    func becameReady(_ events: Int16, now: Instant) {
        switch phase {
        case .connecting:
            if let error = stream.socket.connectError { return end(.connectionFailed("\(error)")) }
            if stream.isEstablished { return open() }
            phase = .handshake
            receive(now: now)
        case .handshake: receive(now: now)
        case .open:
            let isReadable = events & Int16(POLLIN | POLLHUP | POLLERR) != 0
            if isReadable || stream.isReadBlockedByWrite { receive(now: now) }
        case .ended: break
        }
    }

    private func open() {
        phase = .open
        if let hello = state.hello { queued.appendHello(hello) }
    }

    /// The next time at which `checkTime` has something to do.
    var nextCheck: Instant {
        switch phase {
        case .connecting, .handshake: return connectDeadline
        case .ended: return .distantFuture
        case .open:
            if !isWelcomed { return connectDeadline }
            if let pingSent { return pingDeadline(sent: pingSent) }
            return silenceMax.map { lastReceived.advanced(by: $0) } ?? .distantFuture
        }
    }

    func checkTime(now: Instant) {
        guard nextCheck <= now else { return }
        switch phase {
        case .connecting, .handshake: end(.connectionFailed("No answer within \(options.connectTimeout)."))
        case .open where !isWelcomed:
            let message = "No answer to HELLO within \(options.connectTimeout)."
            end(calls.isEmpty ? .connectionFailed(message) : .connectionLost(message))
        case .open where pingSent != nil: end(.connectionLost("The server does not answer a PING."))
        case .open:
            // A server without PING is left alone.
            guard let ping = state.ping(UInt64(bitPattern: now.nanoseconds)) else { return lastReceived = now }
            ping.append(to: &queued)
            pingSent = now
        case .ended: break
        }
    }

    // Bytes

    /// Writes the output, as far as the socket takes it.
    func flush() {
        guard isOpen else { return }
        while true {
            if sending.isEmpty {
                if queued.isEmpty { return }
                swap(&sending, &queued)
            }
            switch stream.write(sending.readable) {
            case .bytes(let count): sending.consume(count)
            case .wouldBlock: return
            case .failed(let reason): return end(.connectionLost(reason))
            }
        }
    }

    private func receive(now: Instant) {
        repeat { receiveOnce(now: now) } while isOpen && stream.hasPendingInput && !stream.isReadBlockedByWrite
    }

    private func receiveOnce(now: Instant) {
        let space = input.reserve(Self.readByteCount)
        let result = stream.read(into: space, byteCount: Self.readByteCount)
        if case .handshake = phase {
            // No call was sent yet: waiting calls may try another server.
            if case .failed(let reason) = result { return end(.connectionFailed(reason)) }
            if stream.isEstablished { open() }
        }
        switch result {
        case .bytes(0): return end(.connectionLost("The server closed the connection."))
        case .bytes(let count): input.commit(count)
        case .wouldBlock: return
        case .failed(let reason): return end(.connectionLost(reason))
        }
        lastReceived = now
        pingSent = nil
        learnedPlaces.forget(now: now)
        while isOpen {
            switch decoder.next(in: &input, payloadMax: .max, now: now) {
            case .needMore: return
            case .frame(let header, let payload):
                let action = state.received(header, payload: payload)
                perform(action, payload: payload, now: now)
                // A server whose first frame breaks the protocol is no better than one that cannot be reached.
                if !isWelcomed, isOpen {
                    isWelcomed = true
                    for call in calls.all { drainOutbox(of: call) }
                }
            case .oversized, .violation: return end(.connectionLost(CloseReason.frameAboveHardCap.text))
            }
        }
    }

    private func perform(_ action: ClientAction, payload: UnsafeRawBufferPointer, now: Instant) {
        switch action {
        case .none, .welcomed, .pingAcknowledged: break
        case .response(let stream): settle(stream, byResponse: payload)
        case .data(let stream, let isLast):
            if isLast {
                calls.remove(stream)?.succeed([UInt8](payload))
            } else if case .stream(let inbox)? = calls[stream]?.answer, !inbox.append([UInt8](payload)) {
                cancel(stream: stream, .cancelled, .readerBehind)
            }
        case .ended(let stream): calls.remove(stream)?.succeed(nil)
        case .cancelled(let stream, .refused):
            learnedPlaces.refused(beside: calls.count - 1, least: options.limits.streamsMaxUnauthenticated, now: now)
            giveBack([stream])
        case .cancelled(let stream, let code):
            let call = calls.remove(stream)
            call?.fail(code == .deadlineExceeded ? .deadlinePassed : .callCancelled)
        case .sendWindowOpened(let stream): if let call = calls[stream] { drainOutbox(of: call) }
        case .pong(let opaque):
            // Answers queue up only for a server that does not read them.
            guard sending.readableByteCount <= Self.unsentByteCountMax else {
                return end(.connectionLost("The server sends PINGs and does not read the answers."))
            }
            ControlFrame.ping(opaque, ack: true).append(to: &sending)
        case .goAway(_, let streams):
            isLeaving = true
            giveBack(streams)
        case .close(let reason): end(.connectionLost("The server broke the protocol: \(reason.text)"))
        }
    }

    private func giveBack(_ streams: [UInt32]) {
        for stream in streams {
            guard let call = calls.remove(stream) else { continue }
            call.placement = .waiting
            // The next stream needs an end of its own.
            call.hasSentEnd = false
            unprocessed.append(call)
        }
    }

    private func settle(_ stream: UInt32, byResponse payload: UnsafeRawBufferPointer) {
        guard let call = calls.remove(stream) else { return }
        guard let envelope = try? ResponseEnvelope(reading: payload, limits: options.limits.messages),
            let status = try? envelope.status.map({ try GoogleStatus(decoding: $0, limits: options.limits.messages) })
                ?? GoogleStatus()
        else {
            return call.fail(
                Failure(.malformedResponse, "The response's envelope is malformed."))
        }
        if let position = envelope.metadata.position { journal.note(position) }
        if status.code != StatusCode.ok.rawValue {
            let failure = Failure(status)
            if failure.is(.invalidPosition) { journal.forget() }
            return call.fail(failure)
        }
        // A stream's RESPONSE is its end; only ttrpc's client streams put a message into it.
        call.succeed(call.kind != .unary && envelope.payload.isEmpty ? nil : [UInt8](envelope.payload))
    }
}
