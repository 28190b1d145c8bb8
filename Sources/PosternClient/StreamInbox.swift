import Base
import Synchronization

/// The messages of a stream on their way from the channel's loop to the one task that reads them.
///
/// Bounded by the stream's window: credit goes back to the server when a message was taken.
final class StreamInbox: Sendable {
    private struct State {
        /// A slice, so that taking the first one does not move the others.
        var messages: ArraySlice<[UInt8]> = []
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

    /// Whether the stream is over, read to its end or not.
    var isEnded: Bool { state.withLock { $0.isEnded } }

    func append(_ message: [UInt8]) {
        let waiter = state.withLock { state -> Promise<Void>? in
            guard !state.isEnded else { return nil }
            state.messages.append(message)
            return state.takeWaiter()
        }
        waiter?.succeed(())
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
