internal import Base
internal import CLMDB

/// The state of the transaction that the writer is in. The writer's thread only.
final class WriteBatch {
    /// In a box of its own, because transactions point at it.
    let borrowCount: UnsafeMutablePointer<Int>
    private(set) var changeCount = 0
    /// LMDB gave the transaction up: it can only be aborted, even if a body swallowed the error.
    private(set) var failure: StoreError?
    /// The events that its writes have appended to tenants' logs so far.
    private(set) var events: [PendingEvent] = []
    /// The number of the newest event of all, after the batch's events got their numbers.
    var newestEvent: UInt64?
    /// The records that the writes have put and deleted so far; nil if nobody asked for them.
    private(set) var changes: [StoreChange]?
    /// The bytes of `changes`, roughly.
    private(set) var changesByteCount = 0
    /// The topics that the writes announced besides those of their rows; kept with `changes` only.
    private(set) var ownTopics: [ChangeTopic] = []
    private var pendingByteCount: Int64 = 0
    /// The topics that the writes have announced so far.
    private(set) var topics: [ChangeTopic] = []
    /// The rows that the writes have changed so far, of tables that mark them.
    private(set) var rows: [MarkedRow] = []
    /// Whether the running write said that it makes the store grow, whatever purpose its caller gave.
    var isGrowth = false
    /// The bytes that the writes have added to tenants' rows so far.
    var usage = UsageChanges()
    /// Whether the writes replaced or deleted a row whose damage may have left pieces or wrong sums.
    private(set) var hasFoundDamage = false
    /// The long values that the writes borrowed.
    let longValues = LongValues()
    private var scratch = ByteBuffer()
    private static let scratchByteCountKept = 64 * 1024

    private let isRecording: Bool

    init(isRecording: Bool) {
        self.isRecording = isRecording
        borrowCount = .allocate(capacity: 1)
        borrowCount.initialize(to: 0)
    }

    deinit { borrowCount.deallocate() }

    func begin(isRecording: Bool) {
        changeCount = 0
        failure = nil
        events.removeAll(keepingCapacity: true)
        newestEvent = nil
        changes = isRecording && self.isRecording ? [] : nil
        changesByteCount = 0
        ownTopics.removeAll(keepingCapacity: true)
        pendingByteCount = 0
        topics.removeAll(keepingCapacity: true)
        rows.removeAll(keepingCapacity: true)
        usage.removeAll()
        hasFoundDamage = false
        longValues.removeAll()
    }

    /// The bytes that the writes so far add to tenants' rows.
    var addedByteCount: Int64 { usage.addedByteCount + pendingByteCount }

    /// An event is a change of the write that appends it.
    func append(_ event: PendingEvent) {
        assertChangeable()
        events.append(event)
        pendingByteCount += Int64(event.rowByteCount)
        changeCount += 1
    }

    /// Notes that a record was put, or deleted (nil).
    func note(_ tableID: UInt8, _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer?) {
        guard changes != nil, StoreChange.isShared(tableID, key) else { return }
        changesByteCount += key.count + (value?.count ?? 0)
        changes?.append(StoreChange(tableID: tableID, key: [UInt8](key), value: value.map { [UInt8]($0) }))
    }

    /// Adds a topic unless it is the last one, because many writes in a row often have the same.
    func announce(_ topic: ChangeTopic) {
        if topics.last != topic { topics.append(topic) }
    }

    func foundDamage() { hasFoundDamage = true }

    /// Counts a change that is no record's.
    func countChange() { changeCount += 1 }

    /// A topic that no row announces.
    func announceOwn(_ topic: ChangeTopic) {
        if changes != nil, ownTopics.last != topic { ownTopics.append(topic) }
        announce(topic)
    }

    func mark(_ row: MarkedRow) {
        if rows.last != row { rows.append(row) }
    }

    /// A value's bytes before they go into the map. Valid until the next call.
    func encoded(_ encode: (inout ByteBuffer) -> Void) -> UnsafeRawBufferPointer {
        scratch.truncate(to: 0)
        scratch.releaseIfIdle(above: Self.scratchByteCountKept)
        encode(&scratch)
        return scratch.readable
    }

    /// LMDB: values are valid only until the next update. A change under a held pointer is our own mistake.
    func assertChangeable() {
        precondition(borrowCount.pointee == 0, "a change inside of withValue or scan")
    }

    func checkChange(_ code: Int32, _ operation: StaticString) throws(StoreError) {
        try check(code, operation)
        changeCount += 1
    }

    /// The same for a part of a change, such as a piece of a long value.
    func check(_ code: Int32, _ operation: StaticString) throws(StoreError) {
        if code == MDB_SUCCESS { return }
        let error = StoreError(code: code, operation: operation)
        if error != .keySize { failure = error }
        throw error
    }
}
