import Base

/// One thread's figures of one operation's requests.
struct OperationRecord: Sendable {
    /// Nanoseconds from when a request was meant to be sent until its answer was read; of requests that succeeded.
    var response = Histogram()
    /// Nanoseconds from when it was sent. Only where a request can be sent later than it was meant to be.
    var service = Histogram()
    /// Nanoseconds between the two.
    var scheduleLag = Histogram()
    /// Answers that came while it counted, also to requests that were due before: the throughput.
    var inTimeCount = 0
    /// Response times of the requests that failed, by reason.
    var failures: [String: Histogram] = [:]

    var okCount: Int { Int(clamping: response.count) }
    var errorCount: Int { failures.values.reduce(0) { $0 + Int(clamping: $1.count) } }
    var isEmpty: Bool { response.isEmpty && failures.isEmpty }
    var errors: [String: Int] { failures.mapValues { Int(clamping: $0.count) } }

    mutating func merge(_ other: OperationRecord) {
        response.merge(other.response)
        service.merge(other.service)
        scheduleLag.merge(other.scheduleLag)
        inTimeCount += other.inTimeCount
        for (reason, histogram) in other.failures { failures[reason, default: Histogram()].merge(histogram) }
    }
}

/// The results of one operation's requests in one slice of time.
struct SliceRecord: Sendable, Equatable {
    var response = Histogram()
    var errors: [String: Int] = [:]

    var errorCount: Int { errors.values.reduce(0, +) }

    mutating func merge(_ other: SliceRecord) {
        response.merge(other.response)
        errors.merge(other.errors, uniquingKeysWith: +)
    }
}

/// One thread's figures, by operation and by second. One owner, not thread-safe.
struct Recorder: Sendable {
    /// The answers in a second of a run, or in more of a long one.
    struct Slice: Sendable {
        var sentCount = 0
        var inFlight = 0
        /// The answers by operation; histograms are kept encoded, a hundredth of their size.
        var operations: [Int: (response: [UInt8], errors: [String: Int])] = [:]
    }

    /// The most reasons, so that a server cannot fill the memory with made-up ones. Further ones count as
    /// `otherReason`.
    static let reasonsMax = 64
    static let otherReason = "OTHER"
    /// A request that was sent more than this after it was due was sent late.
    static let lateness = Duration.milliseconds(1)

    /// The records, by the operation's raw value.
    private(set) var operations: [OperationRecord]
    private(set) var slices: [Slice] = []
    /// How late this program was by its own fault: from when a request was due and there was room for it until it was
    /// sent, in nanoseconds.
    private(set) var ownLag = Histogram()
    private(set) var lateCount = 0
    /// Requests of a schedule that were sent before the run ended, of those that were due in it.
    private(set) var begunCount = 0
    /// Requests that were due and never sent, by reason.
    private(set) var unsent: [String: Int] = [:]
    private(set) var sentCount = 0
    private var lastOperations: [OperationRecord]
    private var lastSentCount = 0

    /// Whether requests are due at times of their own, so that service and response differ.
    let isPaced: Bool

    init(operationCount: Int, isPaced: Bool) {
        operations = [OperationRecord](repeating: OperationRecord(), count: operationCount)
        lastOperations = operations
        self.isPaced = isPaced
    }

    mutating func sent() { sentCount += 1 }

    mutating func answeredInTime(_ operation: Int) { operations[operation].inTimeCount += 1 }

    mutating func succeeded(_ operation: Int, intended: Instant, sent: Instant, now: Instant) {
        operations[operation].response.record(Self.nanoseconds(from: intended, to: now))
        guard isPaced else { return }
        operations[operation].service.record(Self.nanoseconds(from: sent, to: now))
        operations[operation].scheduleLag.record(Self.nanoseconds(from: intended, to: sent))
    }

    mutating func failed(_ operation: Int, _ reason: String, intended: Instant, now: Instant) {
        let isKnown = operations[operation].failures[reason] != nil
        let reason = isKnown || operations[operation].failures.count < Self.reasonsMax ? reason : Self.otherReason
        operations[operation].failures[reason, default: Histogram()].record(Self.nanoseconds(from: intended, to: now))
    }

    /// A request was due at `due`, there was room for it from then on, and it was sent at `now`. `isInTime`: the run
    /// was not over by then.
    mutating func wasOnItsOwn(from due: Instant, until now: Instant, isInTime: Bool) {
        if isInTime { begunCount += 1 }
        let nanoseconds = Self.nanoseconds(from: due, to: now)
        ownLag.record(nanoseconds)
        if nanoseconds > UInt64(clamping: Self.lateness.microseconds * 1_000) { lateCount += 1 }
    }

    mutating func wasNotSent(_ reason: String, count: Int = 1) {
        if count > 0 { unsent[reason, default: 0] += count }
    }

    /// Ends a slice, which has everything that was recorded since the last one ended.
    mutating func endSlice(inFlight: Int) {
        var slice = Slice(sentCount: sentCount - lastSentCount, inFlight: inFlight)
        for index in operations.indices {
            let record = difference(of: index)
            guard !record.response.isEmpty || !record.errors.isEmpty else { continue }
            slice.operations[index] = (record.response.encoded(), record.errors)
        }
        slices.append(slice)
        lastSentCount = sentCount
        lastOperations = operations
    }

    private func difference(of index: Int) -> SliceRecord {
        let (record, last) = (operations[index], lastOperations[index])
        guard record.okCount + record.errorCount > last.okCount + last.errorCount else { return SliceRecord() }
        var slice = SliceRecord()
        if record.response.count > last.response.count {
            slice.response = record.response.difference(since: last.response)
        }
        for (reason, count) in record.errors {
            let earlier = last.failures[reason].map { Int(clamping: $0.count) } ?? 0
            if count > earlier { slice.errors[reason] = count - earlier }
        }
        return slice
    }

    private static func nanoseconds(from start: Instant, to end: Instant) -> UInt64 {
        UInt64(max(0, end.nanoseconds(since: start)))
    }
}
