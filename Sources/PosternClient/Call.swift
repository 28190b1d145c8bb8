import Base
import Messages
import Wire

/// One stream of the protocol, from the moment its caller asks for it to its end.
final class Call: @unchecked Sendable {
    // Unchecked: the `var`s belong to the thread of the channel's loop, the rest never changes.

    enum Answer: Sendable {
        case unary(Promise<[UInt8]>)
        case stream(StreamInbox)
    }

    /// The place of the call, as the channel's core sees it.
    enum Placement {
        /// Next: `waiting`, `settled`.
        case new
        /// The call waits for a connection, or for room on one. Next: `open`, `settled`.
        case waiting
        /// Next: `waiting` (the server did not process it), `settled`.
        case open(ClientConnection, stream: UInt32)
        /// The answer was given. Next: none.
        case settled
    }

    struct OutgoingMessage {
        let message: any Message
        let sent: Promise<Void>
    }

    let service: Text
    let method: Text
    let kind: StreamKind
    let options: CallOptions
    let deadline: Instant
    /// How often the call may be sent while the server says each time that it did not process it.
    let sendingsMax: Int
    /// Whether the channel repeats the call if its connection is lost.
    let isRepeatable: Bool
    let answer: Answer

    var placement = Placement.new
    /// The message in REQUEST. Nil: the first message of a bidirectional stream was not sent yet.
    var request: (any Message)?
    /// Completed when the first message of a bidirectional stream went out.
    var requestSent: Promise<Void>?
    /// The later messages, which wait for the stream's window or for the connection.
    var outbox: [OutgoingMessage] = []
    /// True if no message follows the outbox.
    var isFinishing = false
    /// Whether the end was sent on the stream that the call is on now.
    var hasSentEnd = false
    var hasSentMessages = false
    var refusalCount = 0

    init(
        service: Text, method: Text, kind: StreamKind, request: (any Message)?, options: CallOptions,
        deadline: Instant, sendingsMax: Int, isRepeatable: Bool = false, answer: Answer
    ) {
        self.service = service
        self.method = method
        self.kind = kind
        self.request = request
        self.options = options
        self.deadline = deadline
        self.sendingsMax = sendingsMax
        self.isRepeatable = isRepeatable
        self.answer = answer
    }
}

extension Call {
    var isSettled: Bool {
        if case .settled = placement { true } else { false }
    }

    /// The stream ended well. `payload` is a unary call's answer; nil: there is none.
    func succeed(_ payload: [UInt8]?) {
        guard !isSettled else { return }
        placement = .settled
        switch answer {
        case .unary(let promise): promise.succeed(payload ?? [])
        case .stream(let inbox):
            let isWhole = payload.map { inbox.append($0) } ?? true
            inbox.finish(isWhole ? nil : .readerBehind)
        }
        failOutbox(with: Failure(.streamClosed, "The server ended the stream."))
    }

    func fail(_ failure: Failure) {
        guard !isSettled else { return }
        placement = .settled
        switch answer {
        case .unary(let promise): promise.fail(failure)
        case .stream(let inbox): inbox.finish(failure)
        }
        failOutbox(with: failure)
    }

    private func failOutbox(with failure: Failure) {
        requestSent?.fail(failure)
        for outgoing in outbox { outgoing.sent.fail(failure) }
        outbox = []
    }
}

extension Failure {
    static func connectionFailed(_ message: String) -> Failure {
        Failure(.connectionFailed, message)
    }

    static func connectionLost(_ message: String) -> Failure {
        Failure(.connectionLost, message)
    }

    /// The end of a stream whose server cannot be told to wait.
    static let readerBehind = Failure(
        .streamClosed, as: .resourceExhausted,
        "The server sent more than the reader took. A server without HELLO cannot be told to wait; read faster.")
    static let callCancelled = Failure(.cancelled, "The call was cancelled.")
    static let deadlinePassed = Failure(
        .deadlineExceeded,
        "No answer before the deadline; the call may or may not have been done.")
    static let channelClosed = Failure(.channelClosed, "The channel was shut down.")
    static let messageTooLarge = Failure(
        .messageTooLarge, "The message is above the frame size the server takes.")
}

/// The calls that are open on a connection, by stream. Knows whether, and since when, the connection has to prove soon
/// that it lives.
struct OpenCalls {
    private var byStream: [UInt32: Call] = [:]
    private var repeatableCount = 0
    private var unrepeatableCount = 0
    /// When the first of the repeatable calls was opened that are open now without a gap.
    private var repeatableSince: Instant?

    var isEmpty: Bool { byStream.isEmpty }
    var count: Int { byStream.count }
    var all: some Collection<Call> { byStream.values }

    /// The time from which on the connection must be found dead early, so that unary calls are repeated on another one
    /// before their callers give up. Nil: there is no such call, or also a call that cannot be repeated, for which the
    /// end of a slow connection is worse than waiting.
    var impatientSince: Instant? { unrepeatableCount == 0 ? repeatableSince : nil }

    subscript(stream: UInt32) -> Call? { byStream[stream] }

    mutating func insert(_ call: Call, _ stream: UInt32, now: Instant) {
        byStream[stream] = call
        guard call.kind == .unary else { return }
        if !call.isRepeatable {
            unrepeatableCount += 1
        } else {
            repeatableCount += 1
            repeatableSince = repeatableSince ?? now
        }
    }

    mutating func remove(_ stream: UInt32) -> Call? {
        guard let call = byStream.removeValue(forKey: stream) else { return nil }
        guard call.kind == .unary else { return call }
        if !call.isRepeatable {
            unrepeatableCount -= 1
        } else {
            repeatableCount -= 1
            if repeatableCount == 0 { repeatableSince = nil }
        }
        return call
    }

    mutating func removeAll() { self = OpenCalls() }
}
