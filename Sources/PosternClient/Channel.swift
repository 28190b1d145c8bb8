public import Base
public import Messages
import Synchronization
import Wire

/// Connections that many calls share, to one server or to several equivalent servers. The typed stubs, such as
/// `UsersClient`, and the other client libraries call over a channel.
///
/// The channel connects when the first call needs it, and again when the connection is lost. It opens a second
/// connection to a server only when streams fill the first one. Any task may use it.
///
/// - With several servers, `ChannelOptions.loadBalancing` says which of them gets a call. A call that was not sent goes
///   to another server when one fails; a call that was sent is repeated under the rules below only.
/// - Each address has its own back-off (`ReconnectBackoff`). While no address can be tried, calls fail at once with
///   UNAVAILABLE, unless they wait (`CallOptions.waitsForConnection`).
/// - Above the server's limit of calls in flight, calls wait in order.
/// - Idempotent calls are repeated as `RetryPolicy` says, and so are all calls that the server did not process. A
///   `Tokens.Refresh` without an `attempt_id` gets one, so that it is safe to repeat.
/// - After the server's GOAWAY, calls in flight end on the old connection and new calls go to a new one.
/// - Host names are looked up on threads of their own, before the first connection and again when an address failed.
///
/// Channels share a thread (`ChannelOptions.loops`). `shutdown` closes a channel. Dropping the last reference closes it
/// too, without waiting until it is done.
///
/// ```swift
/// let channel = try Channel(address: "127.0.0.1:7400", credentials: .apiKey(apiKey))
/// let info = try await ProjectClient(channel: channel).serverInfo(ProjectServerInfoRequest())
/// print(info.projectID)
/// await channel.shutdown()
/// ```
public final class Channel: Sendable {
    /// The options that the channel was made with.
    public let options: ChannelOptions
    private let mailbox: Mailbox
    private let retryBudget = Mutex(RetryBudget())
    private let isShutDown = Mutex(false)

    /// Creates a channel to `address`, which is `host:port` or `unix:/path`, or a list of these with commas between
    /// them: at most 16. All servers get the same credential. Sends nothing before the first call. Throws
    /// INVALID_ADDRESS, INVALID_API_KEY.
    public init(address: String, credentials: Credentials, options: ChannelOptions = .init()) throws(Failure) {
        let servers = try ServerAddress.list(parsing: address, countMax: options.limits.channel.serversMax)
        self.options = options
        self.mailbox = try Mailbox(servers: servers, authorization: try credentials.authorization, options: options) {
            ChannelCore(mailbox: $0, poller: $1)
        }
    }

    /// Creates a channel whose connections `transport` makes. Throws INVALID_API_KEY.
    public init(transport: ChannelTransport, credentials: Credentials, options: ChannelOptions = .init())
        throws(Failure)
    {
        self.options = options
        self.mailbox = try Mailbox(
            servers: [ServerAddress(of: transport)], transport: transport,
            authorization: try credentials.authorization, options: options
        ) { ChannelCore(mailbox: $0, poller: $1) }
    }

    deinit { mailbox.close() }

    /// Closes the connections, and returns when nothing of the channel is left. Calls in flight, and later ones, fail
    /// with CHANNEL_CLOSED. A second `shutdown` returns at once.
    public func shutdown() async {
        let isFirst = isShutDown.withLock { isShutDown in
            defer { isShutDown = true }
            return !isShutDown
        }
        guard isFirst else { return }
        mailbox.close()
        // Only ever succeeds.
        _ = try? await mailbox.ended.value()
    }

    /// Sends one request and returns its answer.
    ///
    /// A call that is `idempotent`, or has an idempotency key, is repeated when the server is UNAVAILABLE or the
    /// connection is lost. Throws the server's refusal, or an error with a reason that the client makes. Cancelling the
    /// task throws CANCELLED and tells the server.
    public func unary<Request: Message, Response: Message>(
        _ service: String, _ method: String, _ request: Request, idempotent: Bool, options: CallOptions = .init()
    ) async throws(Failure) -> Response {
        let deadline = Instant.now.advanced(by: options.timeout ?? self.options.timeout)
        let isRepeatable = idempotent || !options.idempotencyKey.isEmpty
        let request = request.repeatable
        let retry = self.options.retry
        var attempt = 1
        var hasForgottenPosition = false
        // The error of an attempt that the server may have executed.
        var lost: Failure?
        while true {
            do throws(Failure) {
                let payload = try await answer(
                    to: request, service, method, options: options, deadline: deadline,
                    sendingsMax: retry.sendings(inAttempt: attempt), isRepeatable: isRepeatable)
                retryBudget.withLock { $0.succeeded() }
                return try decodeResponse(payload, limits: self.options.limits.messages)
            } catch {
                if error.is(.connectionLost, .storeUnavailable) { lost = error }
                // The server did nothing, and the channel has forgotten the refused journal position: the next attempt
                // may succeed.
                if error.is(.invalidPosition), !hasForgottenPosition {
                    hasForgottenPosition = true
                    continue
                }
                let outcome = Self.outcome(of: error, after: lost)
                // The server did not process the call, however often it was sent in this attempt.
                let isGivenBack = error.is(.refused)
                let isBudgeted =
                    isGivenBack || error.code != .unavailable || retryBudget.withLock { $0.failed() }
                if isGivenBack { attempt += retry.sendings(inAttempt: attempt) - 1 }
                guard isRepeatable || isGivenBack, isBudgeted,
                    attempt < (isGivenBack ? retry.sendingsMax : retry.attemptsMax), retry.isWorthRetrying(error)
                else { throw outcome }
                guard try await pause(afterAttempt: attempt, error, deadline: deadline) else { throw outcome }
                attempt += 1
            }
        }
    }

    /// The error of a call whose last attempt failed with `error`. `lost` is the error of an earlier attempt that the
    /// server may have executed. It outranks a refusal that says nothing about that attempt: for example, NODE_BEHIND
    /// and QUOTA_EXCEEDED only say that the last attempt did nothing.
    private static func outcome(of error: Failure, after lost: Failure?) -> Failure {
        guard var outcome = lost,
            error.code == .unavailable || error.code == .resourceExhausted || error.is(.invalidPosition)
        else { return error }
        outcome.retryAfter = error.retryAfter ?? outcome.retryAfter
        return outcome
    }

    /// Sends one request and returns the stream of its answers.
    ///
    /// Returns at once: errors are thrown by the stream. A stream is not repeated when the connection is lost.
    public func serverStream<Request: Message, Response: Message>(
        _ service: String, _ method: String, _ request: Request, options: CallOptions = .init()
    ) async throws(Failure) -> ServerStream<Response> {
        ServerStream(call: start(service, method, .remoteClosed, request, options))
    }

    /// Opens a stream that sends and receives messages independently of each other.
    public func bidirectional<Request: Message, Response: Message>(
        _ service: String, _ method: String, options: CallOptions = .init()
    ) async throws(Failure) -> BidirectionalStream<Request, Response> {
        BidirectionalStream(call: start(service, method, .remoteOpen, nil, options))
    }

    private func answer(
        to request: any Message, _ service: String, _ method: String, options: CallOptions, deadline: Instant,
        sendingsMax: Int, isRepeatable: Bool
    ) async throws(Failure) -> [UInt8] {
        if Task.isCancelled { throw .callCancelled }
        let promise = Promise<[UInt8]>()
        let call = Call(
            service: Text(service), method: Text(method), kind: .unary, request: request, options: options,
            deadline: deadline, sendingsMax: sendingsMax, isRepeatable: isRepeatable, answer: .unary(promise))
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

    /// Waits until the next attempt. False: the deadline comes first.
    private func pause(
        afterAttempt attempt: Int, _ failure: Failure, deadline: Instant
    ) async throws(Failure) -> Bool {
        var generator = SystemRandomNumberGenerator()
        let delay = max(
            options.retry.delay(afterAttempt: attempt, using: &generator), failure.retryAfter ?? .zero)
        guard Instant.now.advanced(by: delay) < deadline else { return false }
        do {
            try await Task.sleep(for: delay)
        } catch {
            throw .callCancelled
        }
        return true
    }

    private func start(
        _ service: String, _ method: String, _ kind: StreamKind, _ request: (any Message)?, _ options: CallOptions
    ) -> StreamCall {
        let inbox = StreamInbox(unreadMax: ClientConnectionState.streamWindow(self.options.limits))
        let deadline = options.timeout.map { Instant.now.advanced(by: $0) } ?? .distantFuture
        let call = Call(
            service: Text(service), method: Text(method), kind: kind, request: request, options: options,
            deadline: deadline, sendingsMax: self.options.retry.sendingsMax, answer: .stream(inbox))
        if !mailbox.post(.start(call)) { inbox.finish(.channelClosed) }
        return StreamCall(call: call, inbox: inbox, mailbox: mailbox, limits: self.options.limits.messages)
    }
}

func decodeResponse<Response: Message>(_ payload: [UInt8], limits: MessageLimits) throws(Failure) -> Response {
    do throws(DecodeError) {
        return try Response(decoding: payload, limits: limits)
    } catch {
        throw Failure(.malformedResponse, "The answer cannot be read: \(error).")
    }
}
