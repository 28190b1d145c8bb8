public import Base
public import Wire

/// A call that outlives the loop's turn in which it came in.
struct ActiveCall {
    let kind: StreamKind
    /// The credential that the dispatcher began the call with; see `Connection.endCalls`.
    let credential: AnyObject?
    /// Named in the failure with which the connection ends the call; empty = none.
    let requestID: Text
    var deadline: Instant
    var task: Task<Void, Never>?
    /// Messages of the client that its handler has not taken yet; bounded by the stream's window.
    var inbox = EventQueue<[UInt8]>()
    /// The bytes of the request that the call keeps until it ends; see `Connection.run`.
    var requestByteCount: Int
    /// The bytes of the message that its handler has taken and works on.
    var takenByteCount = 0
    var isRemoteClosed: Bool
    var reader: Promise<Void>?
    var sender: Promise<Void>?

    mutating func wakeSender() {
        sender?.succeed(())
        sender = nil
    }

    mutating func wakeReader() {
        reader?.succeed(())
        reader = nil
    }
}

extension Connection {
    /// Runs the rest of a call as a task on this connection's loop.
    ///
    /// The task is cancelled by CANCEL, by the deadline (which is answered with DEADLINE_EXCEEDED) and by the end of
    /// the connection; the call counts against the connection's limit until it has really ended. `operation` answers
    /// with `respond` or `fail`, or, on a stream, with `send` and `endStream`. It may begin before this function
    /// returns, and so within the dispatcher's batch. `endCalls` asks about `credential` later.
    /// `requestID` is named in the failure if the connection ends the call. `requestByteCount` counts the memory of its
    /// request, which the call keeps until it ends, or, if the client sends further messages, until the handler
    /// asks for the next one. The request of a stream does not keep the connection from being read: a stream may last
    /// as long as the connection.
    public func run(
        stream: UInt32, kind: StreamKind, deadline: Instant, credential: AnyObject? = nil, requestID: Text = .empty,
        requestByteCount: Int, _ operation: @escaping @Sendable (isolated Connection) async -> Void
    ) {
        let isTaken = kind != .unary
        calls[stream] = ActiveCall(
            kind: kind, credential: credential, requestID: requestID, deadline: deadline,
            requestByteCount: isTaken ? 0 : requestByteCount, isRemoteClosed: kind != .remoteOpen)
        if isTaken { note(stream: stream, taken: requestByteCount) } else { self.requestByteCount += requestByteCount }
        // With the preference, the task resumes on this loop after a wait, and not on Swift's pool first.
        let task = Task.immediate(executorPreference: loop) { [self] in
            await operation(self)
            ended(stream: stream)
        }
        // The task may have ended already.
        if calls[stream] != nil {
            calls[stream]?.task = task
            armTimer(now: .now)
            account()
        }
    }

    /// Counts memory that a call holds beside the bytes of its request, until it ends: the request that was decoded.
    public func holds(stream: UInt32, byteCount: Int) {
        guard byteCount > 0, let call = calls[stream] else { return }
        if call.kind == .unary {
            calls[stream]?.requestByteCount += byteCount
            requestByteCount += byteCount
        } else {
            note(stream: stream, taken: call.takenByteCount + byteCount)
        }
        account()
    }

    private func ended(stream: UInt32) {
        guard let call = calls.removeValue(forKey: stream) else { return }
        inboxByteCount -= call.inbox.sum { $0.count + Self.messageOverhead }
        requestByteCount -= call.requestByteCount
        takenByteCount -= call.takenByteCount
        defer {
            account()
            leaveLineIfGone()
        }
        guard phase != .closed else { return }
        perform(session.finished(stream: stream, output: &output))
        if phase == .peerClosed { closeIfNothingLeft() }
        // Reading may have been paused because of the messages in the call's inbox.
        if phase != .closed { resumeReadingIfDrained() }
        // The timer that looks for silence came before the last call ended.
        if calls.isEmpty, calls.capacity > Self.tableCapacityKept, phase != .closed, isSilent(at: .now) {
            releaseIdleMemory()
        }
    }

    func cancel(stream: UInt32) {
        guard calls[stream] != nil else { return }
        calls[stream]?.task?.cancel()
        calls[stream]?.wakeReader()
        calls[stream]?.wakeSender()
    }

    func cancelAllCalls() {
        for stream in calls.keys { cancel(stream: stream) }
    }

    /// Answers at once the calls whose deadline has passed. Their work is cancelled, and counts until it stops.
    func expireCalls(now: Instant) {
        for (stream, call) in calls where call.deadline <= now {
            calls[stream]?.deadline = .distantFuture
            end(stream: stream, Self.deadlinePassed)
        }
    }

    /// Answers and cancels at once a call that the server ends for its own reasons.
    func end(stream: UInt32, _ failure: Failure) {
        if session.wantsAnswer(stream: stream) {
            if phase != .closed {
                let requestID = calls[stream]?.requestID ?? .empty
                requestID.bytes.withUnsafeBytes { bytes in
                    let metadata = OutgoingMetadata(requestID: bytes.isEmpty ? nil : bytes)
                    session.appendFailure(stream: stream, failure, metadata: metadata, output: &output)
                }
                markDirty()
            }
            session.abandoned(stream: stream)
        }
        cancel(stream: stream)
    }

    /// Answers and cancels the calls that were begun with a credential for which `failure` is not nil.
    ///
    /// Returns whether a call with a credential goes on.
    @discardableResult
    public func endCalls(_ failure: (_ credential: AnyObject) -> Failure?) -> Bool {
        var goesOn = false
        for (stream, call) in calls {
            guard let credential = call.credential else { continue }
            if let failure = failure(credential) { end(stream: stream, failure) } else { goesOn = true }
        }
        return goesOn
    }

    static let credentialMissing = Failure(
        .credentialMissing,
        "The connection showed no credential for too long, or others needed its place; connect again.")

    static let stopping = Failure(
        .shuttingDown, "The server stops; connect again and go on where this ended.")

    static let deadlinePassed = Failure(
        .deadlineExceeded,
        "The call took longer than its deadline; whether it took effect is not known.")

    // MARK: Streams

    /// The memory of the array that holds a message: a message without content is not free.
    static let messageOverhead = 64

    func deliver(_ message: UnsafeRawBufferPointer?, isLast: Bool, to stream: UInt32) {
        guard calls[stream] != nil else { return }
        if let message {
            calls[stream]?.inbox.append([UInt8](message))
            inboxByteCount += message.count + Self.messageOverhead
        }
        if isLast { calls[stream]?.isRemoteClosed = true }
        calls[stream]?.wakeReader()
    }

    /// Counts the message that a handler works on as memory. It does not keep the connection from being read, because
    /// the handler may wait for the client to take its answers.
    private func note(stream: UInt32, taken byteCount: Int) {
        guard let call = calls[stream] else { return }
        takenByteCount += byteCount - call.takenByteCount
        calls[stream]?.takenByteCount = byteCount
    }

    /// The client's next message, or nil when it sends no more. The caller keeps no message that it had before. Throws
    /// `CancellationError`.
    public func nextMessage(stream: UInt32) async throws -> [UInt8]? {
        note(stream: stream, taken: 0)
        account()
        while true {
            try Task.checkCancellation()
            guard let isRemoteClosed = calls[stream]?.isRemoteClosed else { throw CancellationError() }
            // In place: with a second reference to the inbox, taking one message would copy all places.
            if let message = calls[stream]?.inbox.popFirst() {
                inboxByteCount -= message.count + Self.messageOverhead
                note(stream: stream, taken: message.count)
                account()
                resumeReadingIfDrained()
                if phase != .closed {
                    session.consumed(stream: stream, byteCount: message.count, output: &output)
                    markDirty()
                }
                return message
            }
            if isRemoteClosed { return nil }
            let waiter = Promise<Void>()
            calls[stream]?.reader = waiter
            try await waiter.cancellableValue()
        }
    }

    /// Sends one message when the stream's window and the connection's output have room. `write` appends the message in
    /// the step that found room, so that a waiting stream holds no message; if it makes the message, this happens in
    /// `turn`. `heldByteCount` is the memory that the caller holds; it counts while the call waits. Throws
    /// `CancellationError`, and what `write` throws.
    public func send<Made: Sendable>(
        stream: UInt32, heldByteCount: Int, turn: MakingTurn?,
        _ write: @Sendable (inout ByteBuffer) throws -> (hasMessage: Bool, made: Made)
    ) async throws -> Made {
        var mayMake = turn?.isAlwaysTaken != true
        while true {
            try Task.checkCancellation()
            guard phase != .closed, session.wantsAnswer(stream: stream) else { throw CancellationError() }
            if session.maySendMessage(stream: stream), output.byteCount <= unreadOutputMax {
                guard !mayMake, let turn else { break }
                try await workTurn(line: turn.line)
                mayMake = true
                continue
            }
            mayMake = turn == nil
            requestByteCount += heldByteCount
            sendingByteCount += heldByteCount
            account()
            defer {
                requestByteCount -= heldByteCount
                sendingByteCount -= heldByteCount
            }
            try await waitToSend(stream: stream)
        }
        var made: Made?
        let isSent = try session.appendMessage(stream: stream, output: &output) { buffer in
            let (hasMessage, value) = try write(&buffer)
            made = value
            return hasMessage
        }
        guard isSent else { throw Self.answerTooLarge }
        guard let made else { throw CancellationError() }
        markDirty()
        account()
        return made
    }

    var unreadOutputMax: Int {
        let most = isAuthenticated ? limits.unreadOutputMax : limits.waitingBytesMaxUnauthenticated
        return min(most, holdingMax ?? most)
    }

    /// Returns when output was sent, or the stream's window was opened. Throws `CancellationError`.
    func waitToSend(stream: UInt32) async throws {
        let waiter = Promise<Void>()
        calls[stream]?.sender = waiter
        mayHaveSenders = true
        try await waiter.cancellableValue()
    }

    /// Ends a stream with status OK.
    public func endStream(_ stream: UInt32) {
        guard phase != .closed, session.wantsAnswer(stream: stream) else { return }
        session.appendEnd(stream: stream, output: &output)
        markDirty()
    }

    /// Wakes the calls that may go on now: those that wait to make a page, and the streams whose client has a window. A
    /// stream without a window would only look and wait again, and one frame of its client could wake hundreds.
    func wakeSenders() {
        guard mayHaveSenders else { return }
        mayHaveSenders = false
        for stream in Array(calls.keys) where calls[stream]?.sender != nil {
            if calls[stream]?.kind == .unary || session.maySendMessage(stream: stream) {
                calls[stream]?.wakeSender()
            } else {
                mayHaveSenders = true
            }
        }
    }
}

/// The turn of the loop in which a message is made (`Connection.workTurn`).
public struct MakingTurn: Sendable {
    /// The line in which the message waits for its turn.
    public let line: Text
    /// Whether it waits although there is room for it at once. A message that waited for room waits for a turn in any
    /// case: otherwise a client could save many messages up, and have them made all at once.
    public let isAlwaysTaken: Bool

    public init(line: Text, isAlwaysTaken: Bool) { (self.line, self.isAlwaysTaken) = (line, isAlwaysTaken) }
}
