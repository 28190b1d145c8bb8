public import Base
public import Crypto
public import Messages
public import Store

/// The idempotency of a change, which must happen once even if the request is repeated. The change is identified by
/// (caller, tenant, method, idempotency-key); a hash of the request shows whether exactly the same was asked.
///
/// The record is written in the change's own transaction, so that there is never one without the other. Only a change
/// that takes several writes has it in a last write of its own. The record is kept for `Limits.idempotencyLifetime` and
/// never holds a secret.
public struct Idempotency: Sendable {
    private(set) var recordKey: HashKey
    let requestHash: [UInt8]
    /// The tenant that the record belongs to, and whose bytes it counts in.
    let owner: Text
    /// Hash of the caller and the end user; empty where the request is about no end user.
    let subject: [UInt8]
    /// Two limits, and not all of them: an idempotency is a part of every `Origin`, which is copied often.
    let recordsMax: Int
    let lifetime: Duration
    /// The hash of the refresh attempt that the key also is; empty where the key is not one. A client that lost both
    /// the answer to a change and the request calls `Tokens.Refresh` with this attempt, to get the tokens that the
    /// change made.
    let attemptHash: [UInt8]

    /// `owner`: the tenant that the record belongs to; nil: the tenant that the request is about.
    ///
    /// `request` is the message's bytes; they are kept as an HMAC only, because they may hold a password. `endUser`
    /// tells the request's end user from the caller's other end users; it is empty where the request is about no end
    /// user.
    public init(
        key: UnsafeRawBufferPointer, caller: Text, tenantID: Text, owner: Text? = nil, method: String,
        request: UnsafeRawBufferPointer, endUser: [UInt8], hashKey: HMACKey, limits: Limits
    ) throws(Failure) {
        guard (1...limits.idempotencyKeyMax).contains(key.count) else {
            throw Failure(
                .invalidIdempotencyKey,
                "idempotency-key must have 1 to \(limits.idempotencyKeyMax) bytes.")
        }
        self.recordKey = Self.recordKey([UInt8](key), caller: caller, tenantID: tenantID, method: method)
        self.requestHash = hashKey.tag(of: request)
        self.owner = owner ?? tenantID
        self.subject = endUser.isEmpty ? [] : Array(Digest.sha256(caller.bytes + [0] + endUser).prefix(16))
        self.recordsMax = limits.idempotencyRecordsPerSubjectMax
        self.lifetime = limits.idempotencyLifetime
        let attempt = key.count == 32 ? Hex.decode(Array(key)) : nil
        self.attemptHash = attempt.map { Digest.sha256($0) } ?? []
    }

    static func recordKey(_ key: [UInt8], caller: Text, tenantID: Text, method: String) -> HashKey {
        var parts = caller.bytes + [0] + tenantID.bytes + [0]
        parts += [UInt8](method.utf8) + [0]
        return HashKey(Digest.sha256(parts + key))
    }

    /// The idempotency of a later step of the same request, which keeps an answer of its own.
    func step(_ name: String) -> Idempotency {
        var step = self
        step.recordKey = HashKey(Digest.sha256(recordKey.hash + [UInt8](name.utf8)))
        return step
    }
}

/// The session whose tokens were a mutation's first answer, found under the mutation's idempotency key.
public struct RepeatedSession: Error {
    let sessionID: [UInt8]
    /// The counter of the refresh token in that answer.
    let counter: UInt64
    let madeAt: Timestamp
    /// The pending sign-in, if the first answer asked for a second factor; there is no session then.
    let pendingID: [UInt8]

    init(_ record: StoredIdempotency) {
        self.sessionID = record.sessionID
        self.counter = record.counter
        self.madeAt = Timestamp(microseconds: record.madeAtMicros)
        self.pendingID = record.pendingID
    }
}

extension Failure {
    /// The first answer held a secret that is given only once.
    static let alreadyDone = Failure(
        .alreadyDone,
        "This was done by an earlier request with the same idempotency-key; its answer cannot be given again.")

    public static func tooManyIdempotencyKeys(max: Int) -> Failure {
        Failure(
            .tooManyIdempotencyKeys,
            "\(max) idempotency keys were used for this end user within a day; send "
                + "the request without one.")
    }
}

extension ReadTransaction {
    /// The record of the same request if it was done before, otherwise nil. IDEMPOTENCY_KEY_REUSED when the key came
    /// with another request.
    func earlier(_ idempotency: Idempotency) throws -> StoredIdempotency? {
        guard let record = try get(Tables.idempotency, idempotency.recordKey) else { return nil }
        guard constantTimeEqual(record.requestHash, idempotency.requestHash) else {
            throw Failure(
                .idempotencyKeyReused,
                "This idempotency-key came with another request before; use a new key for each change.")
        }
        return record
    }

    /// False when the request's record could not be kept, so that the request is refused before any work is done for
    /// it. A request that was done before still gets its answer.
    public func hasRoom(for idempotency: Idempotency) throws -> Bool {
        if try idempotencyCount(idempotency) < Int64(idempotency.recordsMax) { return true }
        return try exists(Tables.idempotency, idempotency.recordKey)
    }

    /// The number of records that the request's caller has for its end user; 0 where the request is about no end user.
    /// Records about no end user count by their bytes.
    fileprivate func idempotencyCount(_ idempotency: Idempotency) throws -> Int64 {
        guard !idempotency.subject.isEmpty else { return 0 }
        return try get(
            Tables.idempotencyCountsBySubject, TenantHashKey(idempotency.owner, idempotency.subject))?.count ?? 0
    }
}

extension Resources {
    /// The record of the same request if it was done before; nil otherwise, and for a request without a key.
    /// IDEMPOTENCY_KEY_REUSED.
    func earlier(_ origin: Origin) throws -> StoredIdempotency? {
        guard let idempotency = origin.idempotency else { return nil }
        return try store.read { try $0.earlier(idempotency) }
    }

    /// The answer of the same request if it was done before, as `answeringRepeat` kept it. IDEMPOTENCY_KEY_REUSED.
    func earlierAnswer<Answer: Message>(to origin: Origin) throws -> Answer? {
        try earlier(origin).map { try Answer(stored: $0.answer) }
    }

    /// Runs a change that takes several writes, or returns the earlier answer if the same request was done before.
    /// IDEMPOTENCY_KEY_REUSED if the key came with another request. With `validateOnly` no answer is looked up or kept.
    ///
    /// The answer is kept in a write of its own, which comes last. A change that ends early keeps no answer, and its
    /// repeat runs `body` again: so `body` must leave alone what is done already. The same holds for an answer that
    /// `isKept` leaves out. An answer above `Limits.pageBytesMax` is kept as `shortened` makes it.
    ///
    /// If the same request comes twice at once, `body` runs twice, and both requests get the answer that is kept first.
    func answeringRepeat<Answer: Message>(
        ofSeveralWrites origin: Origin, validateOnly: Bool = false, for purpose: WritePurpose = .growth,
        keeping isKept: (Answer) -> Bool = { _ in true }, shortened: (Answer) -> Answer = { $0 },
        _ body: () async throws -> Answer
    ) async throws -> Answer {
        guard !validateOnly, let idempotency = origin.idempotency else { return try await body() }
        if let again: Answer = try earlierAnswer(to: origin) { return again }
        let answer = try await body()
        var kept: [UInt8]?
        if isKept(answer) {
            let isShort = answer.encodedByteCount <= limits.pageBytesMax
            kept = (isShort ? answer : shortened(answer)).encoded()
        }
        let now = clock.now()
        do {
            return try await store.write(for: purpose) { [kept] transaction in
                // The same request may have come twice at once. Then the other one did most of the work.
                if let record = try transaction.reading.earlier(idempotency) {
                    return try Answer(stored: record.answer)
                }
                guard let kept else { return answer }
                // The tenant may have been deleted since the last write. Nothing would remove a new row of it.
                try transaction.reading.requireLiveTenant(idempotency.owner)
                try transaction.keep(idempotency, StoredIdempotency(answer: kept), now: now)
                return answer
            }
        } catch let error as StoreError {
            throw error.afterEarlierWrites
        }
    }
}

/// Runs a request that uses its credential up, unless the same request was done before; then its answer is `earlier`.
///
/// A request that is sent twice at once asks twice: the one that comes second fails, at any step, because the other one
/// has used the credential up meanwhile.
func answeringAgain<Answer>(
    _ earlier: () async throws -> Answer?, _ body: () async throws -> Answer
) async throws -> Answer {
    if let again = try await earlier() { return again }
    do {
        return try await body()
    } catch let failure as Failure {
        if let again = try await earlier() { return again }
        throw failure
    }
}

extension WriteTransaction {
    /// Runs `body`, or returns the earlier answer if the same request was done before. IDEMPOTENCY_KEY_REUSED if the
    /// key came with another request. With `validateOnly` no answer is looked up or kept.
    func answeringRepeat<Answer: Message>(
        of origin: Origin, validateOnly: Bool = false, now: Timestamp, _ body: () throws -> Answer
    ) throws -> Answer {
        guard !validateOnly, let idempotency = origin.idempotency else { return try body() }
        if let record = try reading.earlier(idempotency) { return try Answer(stored: record.answer) }
        let answer = try body()
        try keep(idempotency, StoredIdempotency(answer: answer.encoded()), now: now)
        return answer
    }

    /// Runs `body`, for an answer with a secret in it, which is not kept. ALREADY_DONE if the same request was done
    /// before. With `validateOnly` no request is looked up or noted.
    func refusingRepeat(
        of origin: Origin, validateOnly: Bool = false, now: Timestamp, _ body: () throws -> Void
    ) throws {
        guard !validateOnly, let idempotency = origin.idempotency else { return try body() }
        if try reading.earlier(idempotency) != nil { throw Failure.alreadyDone }
        try body()
        try keep(idempotency, StoredIdempotency(), now: now)
    }

    fileprivate func forgetIdempotency(_ key: HashKey) throws {
        guard let record = try reading.countedRequest(key) else { return }
        try delete(Tables.idempotency, key)
        // A record of an older server, which counted by caller; nothing reads that count any more.
        if !record.caller.isEmpty { try delete(Tables.idempotencyCounts, TextKey(record.caller)) }
        guard !record.subject.isEmpty else { return }
        let countKey = TenantHashKey(record.tenantID, record.subject)
        guard let count = try get(Tables.idempotencyCountsBySubject, countKey)?.count else { return }
        if count > 1 {
            try put(Tables.idempotencyCountsBySubject, countKey, StoredCount(count: count - 1))
        } else {
            try delete(Tables.idempotencyCountsBySubject, countKey)
        }
    }

    /// Writes the record. TOO_MANY_IDEMPOTENCY_KEYS is checked again, because other requests of the same end user may
    /// have come in between.
    func keep(_ idempotency: Idempotency, _ wanted: StoredIdempotency, now: Timestamp) throws {
        if !idempotency.subject.isEmpty {
            let count = try reading.idempotencyCount(idempotency)
            guard count < Int64(idempotency.recordsMax) else {
                throw Failure.tooManyIdempotencyKeys(max: idempotency.recordsMax)
            }
            try put(
                Tables.idempotencyCountsBySubject, TenantHashKey(idempotency.owner, idempotency.subject),
                StoredCount(count: count + 1))
        }
        var record = wanted
        record.requestHash = idempotency.requestHash
        record.tenantID = idempotency.owner
        record.subject = idempotency.subject
        record.madeAtMicros = now.microseconds
        try put(Tables.idempotency, idempotency.recordKey, record)
        try scheduleExpiry(at: now + idempotency.lifetime, Tables.idempotency, idempotency.recordKey)
    }
}

extension StoredIdempotency: ExpiringRecord {
    public static func expire(
        _ key: HashKey, of _: Table<HashKey, Self>, in transaction: borrowing WriteTransaction, now _: Timestamp
    ) throws {
        try transaction.forgetIdempotency(key)
    }
}
