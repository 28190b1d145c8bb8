import Base
import Messages
import PosternClient
import Synchronization

/// One stream of revocations. It is cancelled when it is silent for too long, because a connection may live while
/// nothing is sent on the stream any more, and a stream that waits for a connection may have to wait for the end of a
/// long pause.
final class FeedStream: Sendable {
    typealias Message = TokensWatchRevocationsResponse

    private let stream: ServerStream<Message>
    private let silence: Silence
    private let laterMax: Duration
    private let watchdog: Task<Void, Never>

    /// `firstMax`: the longest wait for the first message, connecting included; `laterMax`: for each of the others.
    init(_ stream: ServerStream<Message>, firstMax: Duration, laterMax: Duration) {
        let silence = Silence(max: firstMax)
        self.stream = stream
        self.silence = silence
        self.laterMax = laterMax
        self.watchdog = Task {
            while let left = silence.left() {
                if (try? await Task.sleep(for: left)) == nil { return }
            }
            stream.cancel()
        }
    }

    deinit {
        watchdog.cancel()
        stream.cancel()
    }

    /// The next message. Nil: the server ended the stream. One task reads.
    func next() async throws(Failure) -> Message? {
        do throws(Failure) {
            var messages = stream.makeAsyncIterator()
            let message = try await messages.next()
            silence.messageCame(nextMax: laterMax)
            return message
        } catch {
            throw silence.isTooLong ? Self.silent : error
        }
    }

    private static let silent = Failure(
        .streamEnded, "The server sent nothing on the feed of revocations for too long; try again.")
}

/// The time since a stream's newest message.
private final class Silence: Sendable {
    private struct State {
        var since: Instant
        var max: Duration
        var isTooLong = false
    }

    private let state: Mutex<State>

    init(max: Duration) { state = Mutex(State(since: .now, max: max)) }

    var isTooLong: Bool { state.withLock { $0.isTooLong } }

    /// Begins anew after a message. `nextMax`: the longest wait for the next one.
    func messageCame(nextMax: Duration) { state.withLock { ($0.since, $0.max) = (.now, nextMax) } }

    /// The time until the silence is too long. Nil: it is too long now.
    func left() -> Duration? {
        state.withLock { state -> Duration? in
            let left = state.max - .nanoseconds(Instant.now.nanoseconds(since: state.since))
            if left > .zero { return left }
            state.isTooLong = true
            return nil
        }
    }
}
