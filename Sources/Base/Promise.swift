public import Synchronization

/// The one bridge from C callbacks and worker threads to `await`. A promise is completed once and waited for once.
///
/// `complete` may come before or after `value()`. A second completion is ignored: a cancelled waiter and a late answer
/// may both complete the promise. The waiter resumes on its own actor's executor, outside the lock.
///
/// Inlinable, because a generic body is not specialised across modules: several promises pass with every change.
public final class Promise<Value: Sendable>: Sendable {
    @usableFromInline
    enum State {
        /// No waiter, and no result yet. Next: `waiting`, `completed`.
        case initial
        /// Next: `taken`.
        case waiting(UnsafeContinuation<Value, any Error>)
        /// Next: `taken`.
        case completed(Result<Value, any Error>)
        case taken
    }

    @usableFromInline let state = Mutex(State.initial)

    public init() {}

    @inlinable
    public func complete(with result: Result<Value, any Error>) {
        let continuation: UnsafeContinuation<Value, any Error>? = state.withLock { state in
            switch state {
            case .initial:
                state = .completed(result)
                return nil
            case .waiting(let continuation):
                state = .taken
                return continuation
            case .completed, .taken:
                return nil
            }
        }
        continuation?.resume(with: result)
    }

    @inlinable
    public func succeed(_ value: Value) { complete(with: .success(value)) }
    @inlinable
    public func fail(_ error: any Error) { complete(with: .failure(error)) }

    /// Waits for the result. A second wait is our own mistake and traps.
    // Proof that the continuation is resumed once: whoever takes it out of `state`, or finds a result there, leaves
    // `taken` behind.
    @inlinable
    public func value() async throws -> Value {
        try await withUnsafeThrowingContinuation { continuation in
            let result: Result<Value, any Error>? = state.withLock { state in
                switch state {
                case .initial:
                    state = .waiting(continuation)
                    return nil
                case .completed(let result):
                    state = .taken
                    return result
                case .waiting, .taken:
                    preconditionFailure("a Promise was waited for twice")
                }
            }
            if let result { continuation.resume(with: result) }
        }
    }

    /// As `value()`, but a cancelled task stops waiting with `CancellationError`; the work itself goes on.
    @inlinable
    public func cancellableValue() async throws -> Value {
        try await withTaskCancellationHandler {
            try await value()
        } onCancel: {
            fail(CancellationError())
        }
    }
}

/// Waits for exactly one answer. This is cheaper than a promise, which may also be completed twice, or never.
///
/// `start` runs at once, on the caller's thread. It gives the `Reply` to the thread that answers; or it throws, and the
/// reply is not used. If no answer is given, the wait does not end. A cancelled task goes on waiting.
@inlinable
public func answer<Value: Sendable>(from start: (Reply<Value>) throws -> Void) async throws -> Value {
    try await withUnsafeThrowingContinuation { continuation in
        do {
            try start(Reply(continuation))
        } catch {
            continuation.resume(throwing: error)
        }
    }
}

/// Takes the answer that a task waits for in `answer(from:)`. Any thread.
public struct Reply<Value: Sendable>: Sendable {
    @usableFromInline let continuation: UnsafeContinuation<Value, any Error>

    @inlinable
    init(_ continuation: UnsafeContinuation<Value, any Error>) { self.continuation = continuation }

    /// Called once; a second call is undefined.
    @inlinable
    public func give(_ result: Result<Value, any Error>) { continuation.resume(with: result) }
}
