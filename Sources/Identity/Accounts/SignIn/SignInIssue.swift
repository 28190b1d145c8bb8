import Base
import Messages
import Rules
import Store

/// A sign-in waits for a second factor, or for the enrolment of one. This is thrown once the transaction that wrote the
/// pending sign-in has committed, and answered as SECOND_FACTOR_REQUIRED or SECOND_FACTOR_ENROLLMENT_REQUIRED.
struct SignInPending: Error {
    let id: [UInt8]
    let kind: PendingSignInKind
    let user: User
    /// The first factor, as in `SessionStart.provider`.
    let provider: Text
}

/// The result of a sign-in's transaction.
enum SignInIssue<Value: Sendable>: Sendable {
    case tokens(Value)
    case waits(SignInPending)
    /// The sign-in is refused, but its transaction commits: counted tries, and a user whom a hook disabled, are kept.
    case refused(Failure)
}

extension SignInIssue {
    func map<Mapped>(_ transform: (Value) -> Mapped) -> SignInIssue<Mapped> {
        switch self {
        case .tokens(let value): .tokens(transform(value))
        case .waits(let pending): .waits(pending)
        case .refused(let failure): .refused(failure)
        }
    }

    /// Throws `SignInPending`, or the refusal.
    func value() throws -> Value {
        switch self {
        case .tokens(let value): return value
        case .waits(let pending): throw pending
        case .refused(let failure): throw failure
        }
    }
}

extension WriteTransaction {
    /// Runs `body`, whose answer has tokens of the session. Throws `RepeatedSession` if the same request was done
    /// before: tokens are not kept, so the caller issues new ones of the same session. For a sign-in that waits for a
    /// second factor the record names the pending sign-in; a refusal has no record.
    func issuingUnlessRepeated<Value>(
        session sessionID: [UInt8], _ origin: Origin, now: Timestamp, _ body: () throws -> SignInIssue<Value>
    ) throws -> SignInIssue<Value> {
        guard let idempotency = origin.idempotency else { return try body() }
        if let record = try reading.earlier(idempotency) { throw RepeatedSession(record) }
        let issue = try body()
        switch issue {
        case .tokens:
            let counter = try get(Tables.sessions, SessionKey(sessionID))?.counter ?? 0
            try keep(idempotency, StoredIdempotency(sessionID: sessionID, counter: counter), now: now)
        case .waits(let pending): try keep(idempotency, StoredIdempotency(pendingID: pending.id), now: now)
        case .refused: break
        }
        return issue
    }
}
