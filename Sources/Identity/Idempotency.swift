public import Base
public import Crypto
import Messages
import Store

/// A change that must happen once, however often it is asked for: (caller, tenant, method, idempotency-key), and what
/// exactly was asked.
///
/// The record is written in the change's own transaction, so that there is never one without the other. It is kept for
/// `Limits.idempotencyLifetime` and never holds a secret.
public struct Idempotency: Sendable {
    let recordKey: HashKey
    let requestHash: [UInt8]
    let caller: Text
    let limits: Limits

    /// `request` is the message's bytes; they are kept as an HMAC only, because they may hold a password.
    public init(
        key: UnsafeRawBufferPointer, caller: Text, tenantID: Text, method: String, request: UnsafeRawBufferPointer,
        hashKey: HMACKey, limits: Limits
    ) throws(Failure) {
        guard (1...limits.idempotencyKeyMax).contains(key.count) else {
            throw Failure(
                .invalidArgument, "INVALID_IDEMPOTENCY_KEY",
                "idempotency-key must have 1 to \(limits.idempotencyKeyMax) bytes.")
        }
        var parts = caller.bytes + [0] + tenantID.bytes + [0]
        parts += [UInt8](method.utf8) + [0]
        parts += [UInt8](key)
        self.recordKey = HashKey(Digest.sha256(parts))
        self.requestHash = hashKey.tag(of: request)
        self.caller = caller
        self.limits = limits
    }
}

extension Failure {
    /// The first answer held something that is told only once.
    static let alreadyDone = Failure(
        .alreadyExists, "ALREADY_DONE",
        "This was done by an earlier request with the same idempotency-key; its answer cannot be given again.")
}

extension ReadTransaction {
    /// What the same request left when it was done before; nil when it was not. IDEMPOTENCY_KEY_REUSED.
    func earlier(_ idempotency: Idempotency) throws -> StoredIdempotency? {
        guard let record = try get(Tables.idempotency, idempotency.recordKey) else { return nil }
        guard constantTimeEqual(record.requestHash, idempotency.requestHash) else {
            throw Failure(
                .invalidArgument, "IDEMPOTENCY_KEY_REUSED",
                "This idempotency-key came with another request before; use a new key for each change.")
        }
        return record
    }
}

extension WriteTransaction {
    /// Runs `body` unless the same request was done before; then its answer is given again.
    ///
    /// IDEMPOTENCY_KEY_REUSED when the key came with another request.
    func once<Answer: Message>(_ origin: Origin, now: Timestamp, _ body: () throws -> Answer) throws -> Answer {
        guard let idempotency = origin.idempotency else { return try body() }
        if let record = try reading.earlier(idempotency) { return try Answer(decoding: record.answer) }
        let answer = try body()
        try keep(idempotency, StoredIdempotency(answer: answer.encoded()), now: now)
        return answer
    }

    /// The same for an answer with a secret in it: ALREADY_DONE the second time.
    func onceOnly(_ origin: Origin, now: Timestamp, _ body: () throws -> Void) throws {
        guard let idempotency = origin.idempotency else { return try body() }
        if try reading.earlier(idempotency) != nil { throw Failure.alreadyDone }
        try body()
        try keep(idempotency, StoredIdempotency(), now: now)
    }

    /// The same for an answer of tokens, those of the session as `body` leaves it: the second time throws
    /// `RepeatedSession`.
    func onceIssuing<Result>(
        session sessionID: [UInt8], _ origin: Origin, now: Timestamp, _ body: () throws -> Result
    ) throws -> Result {
        guard let idempotency = origin.idempotency else { return try body() }
        if let record = try reading.earlier(idempotency) { throw RepeatedSession(record) }
        let result = try body()
        let counter = try get(Tables.sessions, SessionKey(sessionID))?.counter ?? 0
        try keep(idempotency, StoredIdempotency(sessionID: sessionID, counter: counter), now: now)
        return result
    }

    /// What `Project.sweep` does with a record whose time has come.
    func forgetIdempotency(_ key: [UInt8]) throws {
        guard let record = try get(Tables.idempotency, HashKey(key)) else { return }
        try delete(Tables.idempotency, HashKey(key))
        let count = try get(Tables.idempotencyCounts, TextKey(record.caller))?.count ?? 0
        try put(Tables.idempotencyCounts, TextKey(record.caller), StoredCount(count: max(0, count - 1)))
    }

    private func keep(_ idempotency: Idempotency, _ wanted: StoredIdempotency, now: Timestamp) throws {
        let countKey = TextKey(idempotency.caller)
        let count = try get(Tables.idempotencyCounts, countKey)?.count ?? 0
        guard count < Int64(idempotency.limits.idempotencyRecordsPerCallerMax) else {
            throw Failure(
                .resourceExhausted, "TOO_MANY_IDEMPOTENCY_KEYS",
                "This credential has used \(count) idempotency keys within a day; send the request without one.")
        }
        var record = wanted
        record.requestHash = idempotency.requestHash
        record.caller = idempotency.caller
        record.madeAtMicros = now.microseconds
        try put(Tables.idempotencyCounts, countKey, StoredCount(count: count + 1))
        try put(Tables.idempotency, idempotency.recordKey, record)
        try scheduleExpiry(at: now + idempotency.limits.idempotencyLifetime, Tables.idempotency, idempotency.recordKey)
    }
}
