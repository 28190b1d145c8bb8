import Wire

/// The state of a call over one HTTP/2 stream: its request, its work and its answer. Pure; `GRPCSession` performs the
/// actions.
struct GRPCStreamState: Equatable, Sendable {
    enum Request: Sendable {
        /// Next: `message`, `messages`, `ended`, `dropped`.
        case headers
        /// The one message of a unary call or of a server stream is to come. Next: `ended`, `dropped`.
        case message
        /// The client sends as many messages as it likes. Next: `ended`, `dropped`.
        case messages
        case ended
        /// Further input is ignored.
        case dropped
    }

    enum Work: Sendable {
        /// Next: `waiting`, or the stream is refused without work.
        case none
        /// The request is there. Next: `running`.
        case waiting
        /// Next: `over`.
        case running
        case over
    }

    enum Answer: Sendable {
        /// Next: `begun`, `ended`.
        case none
        /// Headers were sent, messages follow. Next: `ended`.
        case begun
        /// Everything was handed to HTTP/2.
        case ended
    }

    enum Action: Equatable, Sendable {
        case none
        /// Begin the call when it is its turn.
        case begin
        /// Hand out what the client sent.
        case deliver
        /// There is no call: the client sent no message.
        case refuseWithoutMessage
        /// Cancel the work.
        case cancel
        /// Forget the stream: nothing of it is left.
        case forget
    }

    private(set) var request = Request.headers
    private(set) var work = Work.none
    private(set) var answer = Answer.none
    /// HTTP/2 has closed the stream.
    private(set) var isClosed = false

    /// The request's headers are complete. `kind` is nil for an unknown method: its call is begun without its message,
    /// only to be refused.
    mutating func headersEnded(_ kind: StreamKind?, isLast: Bool) -> Action {
        guard request == .headers else { return .none }
        guard let kind else {
            (request, work) = (.dropped, .waiting)
            return .begin
        }
        if kind == .remoteOpen {
            (request, work) = (isLast ? .ended : .messages, .waiting)
            return .begin
        }
        request = isLast ? .dropped : .message
        return isLast ? .refuseWithoutMessage : .none
    }

    /// Whether bytes of the body are wanted.
    var takesData: Bool { (request == .message || request == .messages) && !isClosed }

    /// The client sends no more.
    mutating func remoteEnded() -> Action {
        switch request {
        case .message:
            (request, work) = (.ended, .waiting)
            return .begin
        case .messages:
            request = .ended
            return .deliver
        case .headers, .ended, .dropped: return .none
        }
    }

    /// The call's turn has come. False: nobody waits for the answer any more.
    mutating func begin() -> Bool {
        guard work == .waiting, !isClosed, answer == .none else { return false }
        work = .running
        return true
    }

    var wantsAnswer: Bool { work == .running && answer != .ended && !isClosed }

    mutating func answerBegan() { if answer == .none { answer = .begun } }

    mutating func answerEnded() {
        answer = .ended
        if request != .ended { request = .dropped }
        // Refused before its turn came.
        if work == .waiting { work = .none }
    }

    /// HTTP/2 has closed the stream, in good order or by a reset.
    mutating func closed() -> Action {
        guard !isClosed else { return .none }
        isClosed = true
        guard work == .running else { return .forget }
        return answer == .ended ? .none : .cancel
    }

    /// The work of the call has stopped.
    mutating func finished() -> Action {
        work = .over
        return isClosed ? .forget : .none
    }
}
