public import Base
public import Messages

/// The messages of a server stream, in order: `for try await message in stream`.
///
/// At most a window of them (256 KiB) is held here: the server waits for the reader. One task reads; cancelling it, or
/// dropping the stream, cancels the call.
public struct ServerStream<Element: Message>: AsyncSequence, Sendable {
    public typealias Failure = Base.Failure

    let call: StreamCall

    public func makeAsyncIterator() -> Iterator { Iterator(call: call) }

    /// Tells the server to stop; what it sent already can still be read, then CANCELLED is thrown.
    public func cancel() { call.cancel() }

    public struct Iterator: AsyncIteratorProtocol {
        let call: StreamCall

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(Base.Failure) -> Element? {
            try await next()
        }

        /// On the caller's actor, unlike the protocol's default.
        public mutating func next() async throws(Base.Failure) -> Element? {
            guard let payload = try await call.next() else { return nil }
            return try decodeResponse(payload, limits: call.limits)
        }
    }
}

/// A stream in both directions: `send` any number of messages, `finish`, and read the answers as they come.
///
/// One task reads and one sends; they may be the same. The stream opens with the first message.
public struct BidirectionalStream<Request: Message, Element: Message>: AsyncSequence, Sendable {
    public typealias Failure = Base.Failure

    let call: StreamCall

    public func makeAsyncIterator() -> ServerStream<Element>.Iterator { ServerStream.Iterator(call: call) }

    /// Returns when the message is on its way: the server's window, and what the connection takes, hold it up.
    ///
    /// Throws STREAM_CLOSED, MESSAGE_TOO_LARGE, or what ended the stream; the reader is told the latter too. Cancelling
    /// the task cancels the whole stream.
    public func send(_ message: Request) async throws(Base.Failure) { try await call.send(message) }

    /// Says that no message follows. The answers still come; without any message there is no stream, and the reader
    /// gets STREAM_CLOSED.
    public func finish() { call.finishSending() }

    /// Gives the stream up in both directions.
    public func cancel() { call.cancel() }
}

/// A stream's call as its owner holds it. Dropping the last reference cancels the call, so that a reader who leaves
/// early leaves nothing running.
final class StreamCall: Sendable {
    let limits: Limits
    private let call: Call
    private let inbox: StreamInbox
    private let mailbox: Mailbox

    init(call: Call, inbox: StreamInbox, mailbox: Mailbox, limits: Limits) {
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
