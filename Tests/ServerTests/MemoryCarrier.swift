import Base
import Identity
import Messages
import Reactor
import Store
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

    /// A stream that began in the batch of another request: the snapshot that the batch shared, and the one of a read
    /// where the stream's task begins.
    struct Begun: Sendable {
        let shared: Snapshot
        let own: Snapshot
        let ended: Promise<Outcome>
    }

    private struct PendingCall {
        var outcome = Outcome()
        /// The client's messages that are still to come.
        var inbox: ArraySlice<[UInt8]>
        /// The number of answers after which the client goes away.
        var answersMax: Int
        let ended = Promise<Outcome>()
    }

    /// The answers of the present turn of the loop, and the most of any.
    private struct Turns {
        var answers = 0
        var answersMax = 0
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
    private var turns: Turns?
    /// The turns that calls took for pages, and for work that takes as long.
    private(set) var pageTurnCount = 0
    private(set) var workTurnCount = 0
    /// The messages of all streams.
    private(set) var streamedCount = 0
    /// The snapshot of a read where the last task began.
    private var snapshotInRun: Snapshot?

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
        let call = PendingCall(inbox: opensEmpty ? messages[...] : messages.dropFirst(), answersMax: answersMax)
        return try await begin(
            call, fullName, payload: opensEmpty ? [] : messages.first ?? [], kind: kind, authorization: authorization,
            idempotencyKey: idempotencyKey, timeoutNanoseconds: timeoutNanoseconds
        ).value()
    }

    /// Reads a stream's first answers. Returns how many it sent in all, and at most in one turn of the loop.
    func readStream(
        _ fullName: String, _ message: [UInt8], authorization: Text, answersMax: Int
    ) async throws -> (count: Int, inOneTurn: Int) {
        turns = Turns()
        let call = PendingCall(inbox: [], answersMax: answersMax)
        begin(call, fullName, payload: message, kind: .remoteClosed, authorization: authorization)
        let count = try await call.ended.value().messages.count
        return (count, turns?.answersMax ?? 0)
    }

    /// Counts an answer until the loop does something else: what is put behind the running task now.
    private func noteAnswer() {
        guard var turns else { return }
        turns.answers += 1
        turns.answersMax = max(turns.answersMax, turns.answers)
        self.turns = turns
        Task { self.turns?.answers = 0 }
    }

    /// Makes the same call twice, as if both requests had come in together. Only the second one names a position.
    /// `meanwhile` runs between them, on the loop's thread.
    func callTwice(
        _ fullName: String, _ message: [UInt8], authorization: Text, position: Text, meanwhile: @Sendable () -> Void
    ) async throws -> (first: Outcome, second: Outcome) {
        let calls = [PendingCall(inbox: [], answersMax: 1), PendingCall(inbox: [], answersMax: 1)]
        connectionContext.batchBegins(router.service.project.store)
        begin(calls[0], fullName, payload: message, authorization: authorization)
        meanwhile()
        begin(calls[1], fullName, payload: message, authorization: authorization, position: position)
        connectionContext.batchEnded(countingIn: router.service.tenantCalls)
        return (try await calls[0].ended.value(), try await calls[1].ended.value())
    }

    /// Makes a call and begins a stream, as if both requests had come in together. `meanwhile` runs between them, on
    /// the loop's thread. The stream ends after its first message.
    func call(
        _ fullName: String, _ message: [UInt8], thenStream stream: (fullName: String, message: [UInt8]),
        authorization: Text, meanwhile: @Sendable () -> Void
    ) throws -> Begun {
        let store = router.service.project.store
        let streamCall = PendingCall(inbox: [], answersMax: 1)
        connectionContext.batchBegins(store)
        defer { connectionContext.batchEnded(countingIn: router.service.tenantCalls) }
        begin(PendingCall(inbox: [], answersMax: 1), fullName, payload: message, authorization: authorization)
        meanwhile()
        let shared = try store.read { $0.snapshot }
        begin(
            streamCall, stream.fullName, payload: stream.message, kind: .remoteClosed, authorization: authorization)
        return Begun(shared: shared, own: snapshotInRun ?? shared, ended: streamCall.ended)
    }

    @discardableResult
    private func begin(
        _ call: PendingCall, _ fullName: String, payload: [UInt8], kind: StreamKind = .unary, authorization: Text,
        idempotencyKey: Text? = nil, position: Text? = nil, timeoutNanoseconds: Int64 = 0
    ) -> Promise<Outcome> {
        lastStream += 1
        calls[lastStream] = call
        let names = fullName.split(separator: "/").map { [UInt8]($0.utf8) }
        withViews([names[0], names[1], payload] + [authorization, idempotencyKey, position].map { $0?.bytes ?? [] }) {
            let request = RequestEnvelope(
                service: $0[0], method: $0[1], payload: $0[2], timeoutNanoseconds: timeoutNanoseconds,
                metadata: Metadata(
                    authorization: authorization.isEmpty ? nil : $0[3],
                    idempotencyKey: idempotencyKey == nil ? nil : $0[4],
                    position: position == nil ? nil : $0[5]))
            router.answer(request, stream: lastStream, kind: kind, on: self)
        }
        return call.ended
    }

    /// Calls `body` with the memory of all texts.
    private func withViews(
        _ texts: [[UInt8]], _ views: [UnsafeRawBufferPointer] = [], _ body: ([UnsafeRawBufferPointer]) -> Void
    ) {
        guard views.count < texts.count else { return body(views) }
        texts[views.count].withUnsafeBytes { withViews(texts, views + [$0], body) }
    }

    private func end(_ stream: UInt32, _ failure: Failure? = nil) {
        guard var call = calls.removeValue(forKey: stream) else { return }
        call.outcome.failure = failure
        call.ended.succeed(call.outcome)
    }

    // MARK: CallCarrier

    func authenticated(line: Text) { isAuthenticated = true }

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
        stream: UInt32, kind: StreamKind, deadline: Instant, credential: AnyObject?, requestID: Text,
        requestByteCount: Int, _ operation: @escaping @Sendable (isolated MemoryCarrier) async -> Void
    ) {
        calls[stream]?.outcome.deadline = deadline
        snapshotInRun = try? router.service.project.store.read { $0.snapshot }
        Task.immediate(executorPreference: loop) { await operation(self) }
    }

    func holds(stream: UInt32, byteCount: Int) {}
    func awaitsPage() {}
    func pageTurn(stream: UInt32, line: Text) async throws { pageTurnCount += 1 }
    /// The next turn is always this call's: nobody else works on this loop.
    func workTurn(line: Text) async throws {
        workTurnCount += 1
        await Task.yield()
    }

    func send<Made: Sendable>(
        stream: UInt32, heldByteCount: Int, turn: MakingTurn?,
        _ write: @Sendable (inout ByteBuffer) throws -> (hasMessage: Bool, made: Made)
    ) async throws -> Made {
        guard let call = calls[stream], call.outcome.messages.count < call.answersMax else {
            throw CancellationError()
        }
        if let turn, turn.isAlwaysTaken { try await workTurn(line: turn.line) }
        var message = ByteBuffer()
        let (hasMessage, made) = try write(&message)
        if hasMessage {
            calls[stream]?.outcome.messages.append(message.copyBytes())
            streamedCount += 1
            noteAnswer()
        }
        return made
    }

    func nextMessage(stream: UInt32) async throws -> [UInt8]? { calls[stream]?.inbox.popFirst() }
}
