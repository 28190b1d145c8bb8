public import Base
public import Messages
import Synchronization
import Wire

/// A way to one server: a TCP connection, made when it is needed and again when it is lost, over which any number of
/// calls go at once; more than one only where streams fill it. Safe to use from any task; the typed stubs
/// (`UsersClient`, …) are built on it.
///
/// Calls fail at once with UNAVAILABLE while the server cannot be reached, unless they wait for it. Up to the server's
/// limit of streams they are in flight together; above it they wait in order. Idempotent calls are repeated by
/// `RetryPolicy`; any call is, when the server says that it did not process it. `GOAWAY` lets what is in flight end
/// while new calls go to a new connection. Looking up a host name holds the channel's calls up; numeric addresses do
/// not.
///
/// One thread belongs to each channel. `shutdown` ends it; dropping the last reference does too, and waits for it.
public final class Channel: Sendable {
    public let options: ChannelOptions
    private let mailbox = Mailbox()
    private let thread: OSThread
    private let retryBudget = Mutex(RetryBudget())
    private let threadEnded: Promise<Void>
    private let isShutDown = Mutex(false)

    /// `address` is `host:port`. Nothing is sent before the first call. Throws INVALID_ADDRESS, INVALID_API_KEY.
    public init(address: String, credentials: Credentials, options: ChannelOptions = .init()) throws(Failure) {
        let server = try ServerAddress(parsing: address)
        let authorization = try credentials.authorization
        let mailbox = mailbox
        let ended = Promise<Void>()
        self.options = options
        self.threadEnded = ended
        self.thread = OSThread(name: "postern-channel") {
            ChannelLoop(address: server, authorization: authorization, options: options, mailbox: mailbox).run()
            ended.succeed(())
        }
    }

    deinit {
        mailbox.close()
        thread.join()
    }

    /// Closes the connection and ends the thread. Calls in flight fail with CHANNEL_CLOSED, as do later ones.
    public func shutdown() async {
        let isFirst = isShutDown.withLock { isShutDown in
            defer { isShutDown = true }
            return !isShutDown
        }
        guard isFirst else { return }
        mailbox.close()
        // Only ever succeeds.
        _ = try? await threadEnded.value()
        thread.join()
    }

    /// One request, one answer.
    ///
    /// `idempotent` calls, and those with an idempotency key, are sent again when the server was UNAVAILABLE or the
    /// connection was lost. Throws the server's refusal or, with a reason of `ClientReason`, what went wrong on the
    /// way; a cancelled task gets CANCELLED, and the server is told.
    public func unary<Request: Message, Response: Message>(
        _ service: String, _ method: String, _ request: Request, idempotent: Bool, options: CallOptions = .init()
    ) async throws(Failure) -> Response {
        let deadline = Instant.now.advanced(by: options.timeout ?? self.options.timeout)
        let isRepeatable = idempotent || !options.idempotencyKey.isEmpty
        var attempt = 1
        // Whatever keeps later attempts from the server: this one may have been done.
        var lost: Failure?
        while true {
            do throws(Failure) {
                let payload = try await answer(to: request, service, method, options: options, deadline: deadline)
                retryBudget.withLock { $0.succeeded() }
                return try decodeResponse(payload, limits: self.options.limits)
            } catch {
                if error.reason == ClientReason.connectionLost { lost = error }
                let isBudgeted = error.code != .unavailable || retryBudget.withLock { $0.failed() }
                guard isRepeatable, isBudgeted, attempt < self.options.retry.attemptsMax,
                    self.options.retry.isWorthRetrying(error)
                else { throw error.code == .unavailable ? lost ?? error : error }
                try await pause(afterAttempt: attempt, error, deadline: deadline)
                attempt += 1
            }
        }
    }

    /// One request, any number of answers.
    ///
    /// Returns at once; whatever goes wrong is thrown by the stream. It is not repeated when the connection is lost.
    public func serverStream<Request: Message, Response: Message>(
        _ service: String, _ method: String, _ request: Request, options: CallOptions = .init()
    ) async throws(Failure) -> ServerStream<Response> {
        ServerStream(call: start(service, method, .remoteClosed, request, options))
    }

    /// Messages in both directions, independently of each other.
    public func bidirectional<Request: Message, Response: Message>(
        _ service: String, _ method: String, options: CallOptions = .init()
    ) async throws(Failure) -> BidirectionalStream<Request, Response> {
        BidirectionalStream(call: start(service, method, .remoteOpen, nil, options))
    }

    private func answer(
        to request: any Message, _ service: String, _ method: String, options: CallOptions, deadline: Instant
    ) async throws(Failure) -> [UInt8] {
        if Task.isCancelled { throw .callCancelled }
        let promise = Promise<[UInt8]>()
        let call = Call(
            service: Text(service), method: Text(method), kind: .unary, request: request, options: options,
            deadline: deadline, answer: .unary(promise))
        guard mailbox.post(.start(call)) else { throw .channelClosed }
        do {
            return try await withTaskCancellationHandler {
                try await promise.value()
            } onCancel: {
                promise.fail(Failure.callCancelled)
                mailbox.post(.cancel(call))
            }
        } catch let failure as Failure {
            throw failure
        } catch {
            preconditionFailure("a call failed with \(error)")
        }
    }

    private func pause(afterAttempt attempt: Int, _ failure: Failure, deadline: Instant) async throws(Failure) {
        var generator = SystemRandomNumberGenerator()
        let delay = max(
            options.retry.delay(afterAttempt: attempt, using: &generator), failure.retryAfter ?? .zero)
        guard Instant.now.advanced(by: delay) < deadline else { throw failure }
        do {
            try await Task.sleep(for: delay)
        } catch {
            throw .callCancelled
        }
    }

    private func start(
        _ service: String, _ method: String, _ kind: StreamKind, _ request: (any Message)?, _ options: CallOptions
    ) -> StreamCall {
        let inbox = StreamInbox()
        let deadline = options.timeout.map { Instant.now.advanced(by: $0) } ?? .distantFuture
        let call = Call(
            service: Text(service), method: Text(method), kind: kind, request: request, options: options,
            deadline: deadline, answer: .stream(inbox))
        if !mailbox.post(.start(call)) { inbox.finish(.channelClosed) }
        return StreamCall(call: call, inbox: inbox, mailbox: mailbox, limits: self.options.limits)
    }
}

func decodeResponse<Response: Message>(_ payload: [UInt8], limits: Limits) throws(Failure) -> Response {
    do throws(DecodeError) {
        return try Response(decoding: payload, limits: limits)
    } catch {
        throw Failure(.internal, ClientReason.malformedResponse, "The answer cannot be read: \(error).")
    }
}
