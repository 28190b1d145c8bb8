public import Base

/// One event of a tenant as it lies in the log.
public struct StoredEvent: Sendable, Equatable {
    /// Counts the events of all tenants, in the order they were committed.
    public let globalSequence: UInt64
    /// Counts the tenant's events from 1.
    public let sequence: UInt64
    /// The hash of the tenant's event before this one; zeroes before the first.
    public let previousHash: [UInt8]
    public let payload: [UInt8]
}

/// The newest event of a tenant.
public struct EventHead: Sendable, Equatable {
    public let sequence: UInt64
    public let hash: [UInt8]

    public init(sequence: UInt64, hash: [UInt8]) {
        self.sequence = sequence
        self.hash = hash
    }

    /// The head of a tenant without events.
    public static let empty = EventHead(sequence: 0, hash: [UInt8](repeating: 0, count: EventLog.hashByteCount))
}

/// Where a tenant's log begins: the last event that was deleted. What is left verifies from its hash. The record's MAC
/// is the checkpoint's signature: it takes the master key to make one.
public struct EventCheckpoint: Sendable, Equatable {
    public let head: EventHead
    public let cutAt: Timestamp
}

/// What following a tenant's chain found.
public enum EventChainStatus: Sendable, Equatable {
    /// Everything from the checkpoint on, `count` events, is what was committed.
    case intact(count: Int)
    /// The event with this sequence is missing, altered, or not the one its successor or the head was made after.
    case broken(sequence: UInt64)
}

/// The log's layout: a record is global sequence (8) ‖ previous hash (32) ‖ payload; an event's hash covers its key
/// (tenant ‖ 0x00 ‖ sequence) and its whole record.
public enum EventLog {
    public static let hashByteCount = 32
    static let headerByteCount = 8 + hashByteCount
    static let sequenceKey = [UInt8]("sequence".utf8)
    /// With the sequence it makes a key of allowed length.
    static let tenantByteCountMax = 256
}

/// tenant ‖ 0x00 ‖ sequence (8 bytes big-endian).
struct EventKey: StoreKey {
    var tenant: Text
    var sequence: UInt64

    init(tenant: Text, sequence: UInt64) {
        self.tenant = tenant
        self.sequence = sequence
    }

    init?(stored bytes: UnsafeRawBufferPointer) {
        var key = KeyReader(bytes)
        guard let tenant = key.terminated(), let sequence = key.bigEndian(), key.isAtEnd else { return nil }
        self.init(tenant: tenant, sequence: sequence)
    }

    func write(into key: inout KeyWriter) {
        key.append(terminated: tenant)
        key.append(bigEndian: sequence)
    }
}

/// An event that gets its sequence, and its place in its tenant's chain, when its batch ends.
struct PendingEvent {
    let tenant: Text
    let payload: [UInt8]

    /// What its row will take.
    var rowByteCount: Int {
        tenant.byteCount + 1 + 8 + RecordSeal.byteCount + EventLog.headerByteCount + payload.count
            + TenantUsage.rowOverhead
    }
}

extension WriteTransaction {
    /// Appends to the tenant's chain, in the same transaction as the change the event tells of. Nobody reads the event
    /// before the commit: a batch gives its events their sequences at its end.
    public func appendEvent(tenant: Text, _ payload: [UInt8]) throws(StoreError) {
        guard tenant.byteCount <= EventLog.tenantByteCountMax else { throw .keySize }
        batch.append(PendingEvent(tenant: tenant, payload: payload))
    }

    /// Once per batch, before its commit: numbers its events and chains them, in the order in which they were appended.
    func writeEvents() throws(StoreError) {
        guard !batch.events.isEmpty else { return }
        var globalSequence = try reading.newestEvent()
        var heads: [Text: EventHead] = [:]
        for event in batch.events {
            let head: EventHead
            if let known = heads[event.tenant] {
                head = known
            } else {
                head = try reading.eventHead(tenant: event.tenant)
            }
            globalSequence += 1
            var record: [UInt8] = []
            record.reserveCapacity(EventLog.headerByteCount + event.payload.count)
            record.append(bigEndian: globalSequence)
            record += head.hash
            record += event.payload
            let key = EventKey(tenant: event.tenant, sequence: head.sequence + 1)
            try put(Schema.events, key, record)
            heads[event.tenant] = EventHead(
                sequence: key.sequence, hash: try reading.hash(of: record, under: key))
        }
        for (tenant, head) in heads { try put(Schema.eventHeads, TenantPrefix(tenant), head.encoded) }
        var sequence: [UInt8] = []
        sequence.append(bigEndian: globalSequence)
        try put(Schema.meta, EventLog.sequenceKey, sequence)
        batch.newestEvent = globalSequence
    }

    /// Deletes up to `limit` of the tenant's oldest events while `isOld` says so, and leaves a checkpoint in their
    /// place. Returns how many.
    @discardableResult
    public func deleteEvents(
        tenant: Text, limit: Int, now: Timestamp, while isOld: (StoredEvent) throws -> Bool
    ) throws -> Int {
        var old: [StoredEvent] = []
        try reading.scanEvents(tenant: tenant, limit: limit) { event in
            guard try isOld(event) else { return false }
            old.append(event)
            return true
        }
        guard let last = old.last else { return 0 }
        let head = EventHead(sequence: last.sequence, hash: try reading.hash(of: last, tenant: tenant))
        for event in old { try delete(Schema.events, EventKey(tenant: tenant, sequence: event.sequence)) }
        try put(Schema.eventCheckpoints, TenantPrefix(tenant), EventCheckpoint(head: head, cutAt: now).encoded)
        return old.count
    }

    /// Deletes up to `limit` of a deleted tenant's events; whether there may be more. The checkpoint stays, so that
    /// nobody can pass other events for the tenant's.
    public func deleteEvents(ofDeletedTenant tenant: Text, limit: Int, now: Timestamp) throws -> Bool {
        if try deleteEvents(tenant: tenant, limit: limit, now: now, while: { _ in true }) == limit { return true }
        try delete(Schema.eventHeads, TenantPrefix(tenant))
        return false
    }
}

extension ReadTransaction {
    /// The number of the newest event of all tenants.
    func newestEvent() throws(StoreError) -> UInt64 {
        guard let bytes = try get(Schema.meta, EventLog.sequenceKey) else { return 0 }
        guard bytes.count == 8 else { throw corrupt(Schema.meta.id) }
        return bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Nil while the tenant's log is whole.
    public func eventCheckpoint(tenant: Text) throws(StoreError) -> EventCheckpoint? {
        guard let bytes = try get(Schema.eventCheckpoints, TenantPrefix(tenant)) else { return nil }
        guard let checkpoint = EventCheckpoint(bytes) else { throw corrupt(Schema.eventCheckpoints.id) }
        return checkpoint
    }

    /// The tenant that comes behind `last` among those with events; nil when none does.
    public func tenantWithEvents(after last: Text?) throws -> Text? {
        var tenant: Text?
        try scan(Schema.eventHeads, from: last.map { .after(TenantPrefix($0)) } ?? .first, limit: 1) { row in
            tenant = try row.key.tenant
            return false
        }
        return tenant
    }

    /// The tenant's newest event; the checkpoint of a tenant that was deleted.
    public func eventHead(tenant: Text) throws(StoreError) -> EventHead {
        guard let bytes = try get(Schema.eventHeads, TenantPrefix(tenant)) else {
            return try eventCheckpoint(tenant: tenant)?.head ?? .empty
        }
        guard let head = EventHead(bytes) else { throw corrupt(Schema.eventHeads.id) }
        return head
    }

    /// The tenant's events from `sequence` on, in order, until `body` returns false or `limit` is reached; from the
    /// newest backwards if `reversed`, `sequence` then being the highest.
    public func scanEvents(
        tenant: Text, from sequence: UInt64? = nil, reversed: Bool = false, limit: Int = .max,
        _ body: (StoredEvent) throws -> Bool
    ) throws {
        let start = sequence.map { ScanStart.at(EventKey(tenant: tenant, sequence: $0)) } ?? .first
        let prefix = TenantPrefix(tenant)
        try scan(Schema.events, prefix: prefix, from: start, reversed: reversed, limit: limit) { row in
            guard let event = StoredEvent(try row.key, record: row.value) else { throw corrupt(Schema.events.id) }
            return try body(event)
        }
    }

    /// Follows the tenant's chain from its checkpoint, or its first event, to its head.
    public func verifyEvents(tenant: Text) throws -> EventChainStatus {
        var place = try eventCheckpoint(tenant: tenant)?.head ?? .empty
        return try followEvents(tenant: tenant, from: &place, limit: .max)
    }

    /// Follows the tenant's chain from `place`, which it moves, by up to `limit` events. Fewer than `limit` of them
    /// mean that the chain ends at the tenant's head, as it should.
    public func followEvents(tenant: Text, from place: inout EventHead, limit: Int) throws -> EventChainStatus {
        let start = place
        var reached = start
        var broken: UInt64?
        var count = 0
        try scanEvents(tenant: tenant, from: start.sequence + 1, limit: limit) { event in
            guard event.sequence == reached.sequence + 1, event.previousHash == reached.hash else {
                // A wrong reference means that the event it refers to was altered, unless there is none.
                let isAltered = event.sequence == reached.sequence + 1 && reached != start
                broken = reached.sequence + (isAltered ? 0 : 1)
                return false
            }
            reached = EventHead(sequence: event.sequence, hash: try hash(of: event, tenant: tenant))
            count += 1
            return true
        }
        place = reached
        if let broken { return .broken(sequence: broken) }
        guard count < limit else { return .intact(count: count) }
        let head = try eventHead(tenant: tenant)
        if head.sequence != reached.sequence { return .broken(sequence: reached.sequence + 1) }
        return head.hash == reached.hash ? .intact(count: count) : .broken(sequence: head.sequence)
    }

    /// What the tenant's next event, or a checkpoint, refers to this one by.
    public func hash(of event: StoredEvent, tenant: Text) throws(StoreError) -> [UInt8] {
        var record: [UInt8] = []
        record.append(bigEndian: event.globalSequence)
        record += event.previousHash
        record += event.payload
        return try hash(of: record, under: EventKey(tenant: tenant, sequence: event.sequence))
    }

    func hash(of record: [UInt8], under key: EventKey) throws(StoreError) -> [UInt8] {
        try withBytes(of: key) { key throws(StoreError) in
            let hash = record.withUnsafeBytes { environment.eventHash([key, $0]) }
            precondition(hash.count == EventLog.hashByteCount, "an event hash of \(hash.count) bytes")
            return hash
        }
    }
}

extension StoredEvent {
    fileprivate init?(_ key: EventKey, record: UnsafeRawBufferPointer) {
        guard record.count >= EventLog.headerByteCount else { return nil }
        self.sequence = key.sequence
        self.globalSequence = UInt64(bigEndian: record.loadUnaligned(as: UInt64.self))
        self.previousHash = [UInt8](record[8..<EventLog.headerByteCount])
        self.payload = [UInt8](record[EventLog.headerByteCount...])
    }
}

extension EventHead {
    /// sequence (8) ‖ hash (32).
    init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == 8 + EventLog.hashByteCount else { return nil }
        self.init(sequence: bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }, hash: [UInt8](bytes.dropFirst(8)))
    }

    var encoded: [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: sequence)
        return bytes + hash
    }
}

extension EventCheckpoint {
    /// The head ‖ the time of the cut (µs, 8).
    init?(_ bytes: [UInt8]) {
        guard bytes.count == 16 + EventLog.hashByteCount, let head = EventHead(bytes.dropLast(8)) else { return nil }
        let micros = bytes.suffix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        self.init(head: head, cutAt: Timestamp(microseconds: Int64(bitPattern: micros)))
    }

    var encoded: [UInt8] {
        var bytes = head.encoded
        bytes.append(bigEndian: UInt64(bitPattern: cutAt.microseconds))
        return bytes
    }
}

extension [UInt8] {
    fileprivate mutating func append(bigEndian value: UInt64) {
        Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
    }
}
