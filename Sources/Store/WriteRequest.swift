import Base

/// A queued write: its body, its waiting caller, and the result of its last run.
class WriteRequest: @unchecked Sendable {
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

    init(for purpose: WritePurpose, mayBePutOff: Bool) {
        self.purposeMax = max(purpose, WritePurpose.current)
        self.mayBePutOff = mayBePutOff
    }

    /// Whether its caller was already told that the deadline has passed.
    func isOverdue(at now: Instant) -> Bool { meter.map { $0.deadline <= now } ?? false }

    /// Whether the last run changed anything.
    var isChanging: Bool { addedByteCount != nil }

    /// Notes that the last run was committed.
    func count() {
        if let addedByteCount, let meter { meter.add(byteCount: addedByteCount) }
    }

    func run(in transaction: borrowing WriteTransaction) throws {
        preconditionFailure("abstract")
    }

    /// Hands out the result of the last run, or `error`. Called once.
    func finish() {
        preconditionFailure("abstract")
    }
}

final class TypedWriteRequest<Value: Sendable>: WriteRequest, @unchecked Sendable {
    // Unchecked: as its superclass.

    enum Completion {
        case promise(Promise<Value>)
        case callback(@Sendable (Result<Value, any Error>) -> Void)
    }

    private let body: @Sendable (borrowing WriteTransaction) throws -> Value
    private let completion: Completion
    private var value: Value?

    init(
        for purpose: WritePurpose = .growth, mayBePutOff: Bool = false,
        _ body: @escaping @Sendable (borrowing WriteTransaction) throws -> Value,
        _ completion: Completion
    ) {
        self.body = body
        self.completion = completion
        super.init(for: purpose, mayBePutOff: mayBePutOff)
    }

    override func run(in transaction: borrowing WriteTransaction) throws {
        value = try body(transaction)
    }

    override func finish() {
        let result: Result<Value, any Error>
        if let error {
            result = .failure(error)
        } else if let value {
            result = .success(value)
        } else {
            preconditionFailure("a write was finished before it ran")
        }
        switch completion {
        case .promise(let promise): promise.complete(with: result)
        case .callback(let callback): callback(result)
        }
    }
}
