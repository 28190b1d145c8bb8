public import Base
public import Messages

/// The messages of a server stream, in order.
///
/// The stream holds at most 256 KiB of unread messages and one more message; the server waits for the reader. A stock
/// ttrpc server cannot wait: there, a stream whose reader is that far behind ends with STREAM_CLOSED
/// (RESOURCE_EXHAUSTED). One task may read. Cancelling the task, or dropping the stream, cancels the call.
///
/// ```swift
/// let stream = try await TenantsClient(channel: channel).watchDenials(TenantsWatchDenialsRequest(tenantID: "acme"))
/// for try await message in stream { print(message.denial?.operation ?? "") }
/// ```
public struct ServerStream<Element: Message>: AsyncSequence, Sendable {
    /// The server's refusal, or an error with a reason that the client makes.
    public typealias Failure = Base.Failure

    let call: StreamCall

    /// Reads the stream. A second iterator takes messages away from the first.
    public func makeAsyncIterator() -> Iterator { Iterator(call: call) }

    /// Tells the server to stop. Messages that arrived already can still be read; then CANCELLED is thrown.
    public func cancel() { call.cancel() }

    /// Reads the stream for one task.
    public struct Iterator: AsyncIteratorProtocol {
        let call: StreamCall

        /// The next message, called by `for try await`.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(Base.Failure) -> Element? {
            try await next()
        }

        /// The next message. Nil: the server ended the stream. Runs on the caller's actor, unlike the protocol's
        /// default.
        public mutating func next() async throws(Base.Failure) -> Element? {
            guard let payload = try await call.next() else { return nil }
            return try decodeResponse(payload, limits: call.limits)
        }
    }
}

/// A stream in both directions: `send` messages, `finish`, and read the answers as they come.
///
/// One task may read and one may send; both may be the same task. The stream opens with the first message.
///
/// ```swift
/// let stream = try await UsersClient(channel: channel).import()
/// try await stream.send(UsersImportRequest(tenantID: "acme", users: rows))
/// stream.finish()
/// for try await answer in stream { print(answer.createdCount) }
/// ```
public struct BidirectionalStream<Request: Message, Element: Message>: AsyncSequence, Sendable {
    /// The server's refusal, or an error with a reason that the client makes.
    public typealias Failure = Base.Failure

    let call: StreamCall

    /// Reads the answers. A second iterator takes messages away from the first.
    public func makeAsyncIterator() -> ServerStream<Element>.Iterator { ServerStream.Iterator(call: call) }

    /// Sends a message. Returns when the message is on its way; the server's window and the connection may delay it.
    ///
    /// Throws STREAM_CLOSED, MESSAGE_TOO_LARGE, or the error that ended the stream. Cancelling the task cancels the
    /// whole stream.
    public func send(_ message: Request) async throws(Base.Failure) { try await call.send(message) }

    /// Says that no message follows. The answers still come. If no message was sent, there was no stream: the reader
    /// gets STREAM_CLOSED.
    public func finish() { call.finishSending() }

    /// Cancels the stream in both directions.
    public func cancel() { call.cancel() }
}

/// A stream's call as its owner holds it. Dropping the last reference cancels the call, so that a reader who leaves
/// early leaves nothing running.
final class StreamCall: Sendable {
    let limits: MessageLimits
    private let call: Call
    private let inbox: StreamInbox
    private let mailbox: Mailbox

    init(call: Call, inbox: StreamInbox, mailbox: Mailbox, limits: MessageLimits) {
        self.limits = limits
        self.call = call
        self.inbox = inbox
        self.mailbox = mailbox
    }

    deinit { cancel() }

    func cancel() {
        guard !inbox.isEnded else { return }
        inbox.finish(.callCancelled)
        mailbox.post(.cancel(call))
    }

    func next() async throws(Failure) -> [UInt8]? {
        let payload: [UInt8]?
        do {
            payload = try await withTaskCancellationHandler {
                try await inbox.next()
            } onCancel: {
                cancel()
            }
        } catch let failure as Failure {
            throw failure
        } catch {
            preconditionFailure("a stream failed with \(error)")
        }
        if let payload { mailbox.post(.consumed(call, payloadByteCount: payload.count)) }
        return payload
    }

    func send(_ message: any Message) async throws(Failure) {
        let sent = Promise<Void>()
        guard mailbox.post(.send(call, message, sent)) else { throw .channelClosed }
        do {
            try await withTaskCancellationHandler {
                try await sent.value()
            } onCancel: {
                cancel()
            }
        } catch let failure as Failure {
            throw failure
        } catch {
            preconditionFailure("a message failed with \(error)")
        }
    }

    func finishSending() { mailbox.post(.finishSending(call)) }
}
