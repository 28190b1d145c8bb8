import Base
import Synchronization
import Wire

/// The messages of a stream on their way from the channel's loop to the one task that reads them.
///
/// Bounded by the stream's window: credit goes back to the server when a message was taken. A stock server knows no
/// windows, so the inbox counts as well. It holds the window and one message at most.
final class StreamInbox: Sendable {
    private struct State {
        /// A slice, so that taking the first one does not move the others.
        var messages: ArraySlice<[UInt8]> = []
        /// The bytes of `messages` on the wire, frame headers included.
        var unreadByteCount = 0
        var isEnded = false
        /// The error that is thrown behind the messages. Nil: the stream ended well.
        var failure: Failure?
        var waiter: Promise<Void>?

        mutating func takeMessage() -> [UInt8]? {
            guard !messages.isEmpty else { return nil }
            // The slice keeps its first places until it grows, so that they must not keep the message.
            var message: [UInt8] = []
            swap(&message, &messages[messages.startIndex])
            messages.removeFirst()
            if messages.isEmpty { messages = [] }
            unreadByteCount -= StreamInbox.cost(of: message)
            return message
        }

        mutating func takeWaiter() -> Promise<Void>? {
            defer { waiter = nil }
            return waiter
        }
    }

    private enum Next {
        case message([UInt8])
        case end
        case failure(Failure)
        case wait(Promise<Void>)
    }

    private let state = Mutex(State())
    private let unreadMax: Int

    /// `unreadMax`: the bytes of unread messages from which on no further message is taken in.
    init(unreadMax: Int) { self.unreadMax = unreadMax }

    private static func cost(of message: [UInt8]) -> Int { FrameHeader.byteCount + message.count }

    /// Whether the stream is over, read to its end or not.
    var isEnded: Bool { state.withLock { $0.isEnded } }

    /// Returns false if the message was not taken in, because the server sends faster than the reader reads. The caller
    /// ends the stream then. A server that keeps to the window never comes here.
    func append(_ message: [UInt8]) -> Bool {
        let (isTaken, waiter) = state.withLock { state -> (Bool, Promise<Void>?) in
            guard !state.isEnded else { return (true, nil) }
            guard state.unreadByteCount < unreadMax else { return (false, nil) }
            state.messages.append(message)
            state.unreadByteCount += Self.cost(of: message)
            return (true, state.takeWaiter())
        }
        waiter?.succeed(())
        return isTaken
    }

    func finish(_ failure: Failure?) {
        let waiter = state.withLock { state -> Promise<Void>? in
            guard !state.isEnded else { return nil }
            state.isEnded = true
            state.failure = failure
            return state.takeWaiter()
        }
        waiter?.succeed(())
    }

    /// The next message; nil at the end. One task at a time: a second reader is our own mistake and traps.
    func next() async throws(Failure) -> [UInt8]? {
        while true {
            let next = state.withLock { state -> Next in
                if let message = state.takeMessage() { return .message(message) }
                if let failure = state.failure {
                    state.failure = nil
                    return .failure(failure)
                }
                if state.isEnded { return .end }
                precondition(state.waiter == nil, "two tasks read one stream")
                let waiter = Promise<Void>()
                state.waiter = waiter
                return .wait(waiter)
            }
            switch next {
            case .message(let message): return message
            case .end: return nil
            case .failure(let failure): throw failure
            // Only ever succeeds.
            case .wait(let waiter): _ = try? await waiter.value()
            }
        }
    }
}
