import Base

/// A queued write: its body, its waiting caller, and the result of its last run.
final class WriteRequest: WaitingWrite, @unchecked Sendable {
    // Unchecked: only the writer's thread touches the variables, after the queue's lock handed the request over.

    /// Why the last run failed; nil if it succeeded.
    var error: (any Error)?
    /// True if the body threw after a change. The batch is then run again without it.
    var isExcluded = false
    /// The strongest purpose that the caller allowed, and the purpose that the last run had.
    private let purposeMax: WritePurpose
    var purpose: WritePurpose { isGrowth ? .growth : purposeMax }
    var isGrowth = false
    /// Whether its commit may be put off while there is time to spare.
    let mayBePutOff: Bool
    /// The meter of the call that asked for this write.
    private let meter = WriteMeter.current
    /// The bytes that the last run added to tenants' rows. Nil if it changed nothing.
    var addedByteCount: Int64?
    /// The changes of the last run.
    var changeCount = 0
    /// The nanoseconds that the last run took, and its share of the commit.
    var cost: Int64 = 0
    /// The tenant on whose behalf the request is made, or `WriteMeter.server`.
    var tenant: Text { meter?.tenant ?? WriteMeter.server }
    /// Whether some call waits for it, and not the server alone.
    var isOfCall: Bool { meter != nil }
    /// Used under the queue's lock.
    var turn: WriteTurn?

    private let body: @Sendable (borrowing WriteTransaction) throws -> Void
    /// Prepares the answer, before the last run is committed.
    private let preparation: (@Sendable () -> Void)?
    /// Nil once the request is finished.
    private var completion: (@Sendable ((any Error)?) -> Void)?

    private init(
        for purpose: WritePurpose, mayBePutOff: Bool,
        _ body: @escaping @Sendable (borrowing WriteTransaction) throws -> Void,
        preparation: (@Sendable () -> Void)? = nil, whenDone completion: @escaping @Sendable ((any Error)?) -> Void
    ) {
        self.purposeMax = max(purpose, WritePurpose.current)
        self.mayBePutOff = mayBePutOff
        self.body = body
        self.preparation = preparation
        self.completion = completion
    }

    enum Completion<Value: Sendable>: Sendable {
        case reply(Reply<Value>)
        case callback(@Sendable (Result<Value, any Error>) -> Void)

        func give(_ result: Result<Value, any Error>) {
            switch self {
            case .reply(let reply): reply.give(result)
            case .callback(let callback): callback(result)
            }
        }
    }

    // The class is not generic: a generic class finds its own types at run time, and copies the value several times.
    convenience init<Value: Sendable>(
        for purpose: WritePurpose = .growth, mayBePutOff: Bool = false,
        _ body: @escaping @Sendable (borrowing WriteTransaction) throws -> Value,
        _ completion: Completion<Value>
    ) {
        // Unsafe: as for the class.
        nonisolated(unsafe) var value: Value?
        self.init(for: purpose, mayBePutOff: mayBePutOff) { transaction in
            value = try body(transaction)
        } whenDone: { error in
            if let error { return completion.give(.failure(error)) }
            guard let value else { preconditionFailure("a write was finished before it ran") }
            completion.give(.success(value))
        }
    }

    /// `prepare` makes the answer of what `body` returns, before the commit.
    convenience init<Value: Sendable, Prepared: Sendable>(
        for purpose: WritePurpose, mayBePutOff: Bool, preparing prepare: @escaping @Sendable (Value) -> Prepared,
        _ body: @escaping @Sendable (borrowing WriteTransaction) throws -> Value,
        _ completion: Completion<Prepared>
    ) {
        // Unsafe: as for the class.
        nonisolated(unsafe) var (value, prepared): (Value?, Prepared?)
        self.init(for: purpose, mayBePutOff: mayBePutOff) { transaction in
            prepared = nil
            value = try body(transaction)
        } preparation: {
            prepared = value.map(prepare)
        } whenDone: { error in
            if let error { return completion.give(.failure(error)) }
            // A run that changed nothing is not committed, and prepared only now.
            // Proof: a request without an error has run, and `body` left a value.
            guard let answer = prepared ?? value.map(prepare) else { preconditionFailure("a write has not run") }
            completion.give(.success(answer))
        }
    }

    /// Whether its caller was already told that the deadline has passed.
    func isOverdue(at now: Instant) -> Bool { meter.map { $0.deadline <= now } ?? false }

    /// Whether the last run changed anything.
    var isChanging: Bool { addedByteCount != nil }

    /// The request is to run as if it had not run before.
    func forgetRun() {
        (isExcluded, error, isGrowth, addedByteCount) = (false, nil, false, nil)
        (changeCount, cost) = (0, 0)
    }

    /// Notes that the last run was committed.
    func count() {
        if let addedByteCount, let meter { meter.add(byteCount: addedByteCount) }
    }

    func run(in transaction: borrowing WriteTransaction) throws { try body(transaction) }

    /// Prepares the answer of a run that is about to be committed.
    func prepare() {
        if error == nil { preparation?() }
    }

    /// Hands out the result of the last run, or `error`. Does nothing when called again.
    func finish() { completion.take()?(error) }
}
