import Base
import HTTP2
import Wire

// How long a client may keep the session waiting: for the rest of a request, for the rest of a stream's message, and
// for windows.

extension GRPCSession {
    var deadline: Instant? {
        let request = incomplete.first.map { $0.beganAt.advanced(by: limits.requestTimeoutMax) }
        let message = oldestPartialMessage.map { $0.inputSince.advanced(by: limits.requestTimeoutMax) }
        let held = heldAnswers > 0 ? heldProgressAt.advanced(by: limits.writeTimeout) : nil
        let first = min(request ?? .distantFuture, message ?? .distantFuture, held ?? .distantFuture)
        return first == .distantFuture ? nil : first
    }

    func deadlinePassed(now: Instant, output: inout OutputQueue) -> SessionEvent {
        self.now = now
        if heldAnswers > 0, heldProgressAt.advanced(by: limits.writeTimeout) <= now {
            return end(.writeTimeout, output: &output)
        }
        while let first = incomplete.first, first.beganAt.advanced(by: limits.requestTimeoutMax) <= now {
            incomplete.removeFirst()
            refuse(first, .requestTimeout)
        }
        let partial = oldestPartialMessage
        if let partial, partial.inputSince.advanced(by: limits.requestTimeoutMax) <= now {
            metrics.framesRefused.add()
            answerFailure(partial, GRPCStatus(.messageTimeout, requestID: partial.headers.requestID))
            pump(&output)
            return .cancel(stream: partial.id)
        }
        pump(&output)
        return closeIfDone()
    }

    /// The open stream that waits longest for the rest of a message that has begun to come.
    ///
    /// Streams whose client cannot go on are left out: a handler has not taken the earlier messages, or another stream
    /// has the room for a large message.
    private var oldestPartialMessage: GRPCStream? {
        guard openStreams > 0, inputByteCount > 0 else { return nil }
        var oldest: GRPCStream?
        for stream in streams.values where stream.waitsForRestOfMessage {
            if stream.inputSince < oldest?.inputSince ?? .distantFuture { oldest = stream }
        }
        return oldest
    }

    var heldSince: Instant? {
        var since = incomplete.first?.beganAt ?? .distantFuture
        if pendingByteCount > 0 { since = min(since, heldProgressAt) }
        if inputByteCount > 0 {
            for stream in streams.values where !stream.input.isEmpty { since = min(since, stream.inputSince) }
        }
        return since == .distantFuture ? nil : since
    }
}
