import Base
import Messages
import Reactor
import Transport
import Wire

@testable import Service

/// Carries calls to a server's router without a socket and without frames: all that another protocol has to write.
actor MemoryCarrier: CallCarrier {
    /// The answered messages, and how the call ended: `failure` is nil when it ended well.
    struct Outcome: Sendable {
        var messages: [[UInt8]] = []
        var failure: Failure?
        /// The deadline of a call that outlives the turn it came in.
        var deadline: Instant?

        func message<Response: Message>(_ type: Response.Type = Response.self) throws -> Response {
            if let failure { throw failure }
            return try Response(decoding: messages.first ?? [])
        }
    }

    private struct PendingCall {
        var outcome = Outcome()
        /// The client's messages that are still to come.
        var inbox: ArraySlice<[UInt8]>
        /// The number of answers after which the client goes away.
        var answersMax: Int
        let ended = Promise<Outcome>()
    }

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let id: UInt64 = 0xFFFF_FFFF
    nonisolated let peerAddress: Text = "memory"
    let connectionContext = ConnectionContext()
    private(set) var isAuthenticated = false
    let form = CallForm()
    private let router: Router
    private var calls: [UInt32: PendingCall] = [:]
    private var lastStream: UInt32 = 0

    init(router: Router, loop: EventLoop) {
        self.router = router
        self.loop = loop
    }

    /// Makes one call. `messages` are the client's: the first one comes with the request, unless `opensEmpty`.
    func call(
        _ fullName: String, _ messages: [[UInt8]], kind: StreamKind = .unary, opensEmpty: Bool = false,
        authorization: Text = .empty, idempotencyKey: Text? = nil, timeoutNanoseconds: Int64 = 0,
        answersMax: Int = .max
    ) async throws -> Outcome {
        lastStream += 1
        let stream = lastStream
        let call = PendingCall(inbox: opensEmpty ? messages[...] : messages.dropFirst(), answersMax: answersMax)
        calls[stream] = call
        let names = fullName.split(separator: "/").map { [UInt8]($0.utf8) }
        let payload = opensEmpty ? [] : messages.first ?? []
        names[0].withUnsafeBytes { service in
            names[1].withUnsafeBytes { method in
                payload.withUnsafeBytes { payload in
                    authorization.bytes.withUnsafeBytes { authorization in
                        (idempotencyKey ?? .empty).bytes.withUnsafeBytes { key in
                            let request = RequestEnvelope(
                                service: service, method: method, payload: payload,
                                timeoutNanoseconds: timeoutNanoseconds,
                                metadata: Metadata(
                                    authorization: authorization.isEmpty ? nil : authorization,
                                    idempotencyKey: idempotencyKey == nil ? nil : key))
                            router.answer(request, stream: stream, kind: kind, on: self)
                        }
                    }
                }
            }
        }
        return try await call.ended.value()
    }

    private func end(_ stream: UInt32, _ failure: Failure? = nil) {
        guard var call = calls.removeValue(forKey: stream) else { return }
        call.outcome.failure = failure
        call.ended.succeed(call.outcome)
    }

    // MARK: CallCarrier

    func authenticated() { isAuthenticated = true }

    func respond(
        stream: UInt32, metadata: OutgoingMetadata, _ write: (inout ByteBuffer) throws -> Void
    ) rethrows {
        var output = ByteBuffer()
        try write(&output)
        calls[stream]?.outcome.messages.append(output.copyBytes())
        end(stream)
    }

    func fail(stream: UInt32, _ failure: Failure, metadata: OutgoingMetadata) { end(stream, failure) }

    func endStream(_ stream: UInt32) { end(stream) }

    func run(
        stream: UInt32, kind: StreamKind, deadline: Instant, credential: AnyObject?, requestByteCount: Int,
        _ operation: @escaping @Sendable (isolated MemoryCarrier) async -> Void
    ) {
        calls[stream]?.outcome.deadline = deadline
        Task.immediate(executorPreference: loop) { await operation(self) }
    }

    func awaitsPage() {}
    func pageTurn(stream: UInt32) async throws {}

    func send<Made: Sendable>(
        stream: UInt32, heldByteCount: Int,
        _ write: @Sendable (inout ByteBuffer) throws -> (hasMessage: Bool, made: Made)
    ) async throws -> Made {
        guard let call = calls[stream], call.outcome.messages.count < call.answersMax else {
            throw CancellationError()
        }
        var message = ByteBuffer()
        let (hasMessage, made) = try write(&message)
        if hasMessage { calls[stream]?.outcome.messages.append(message.copyBytes()) }
        return made
    }

    func nextMessage(stream: UInt32) async throws -> [UInt8]? { calls[stream]?.inbox.popFirst() }
}
