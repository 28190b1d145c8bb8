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

    /// Of a tenant without events.
    public static let empty = EventHead(sequence: 0, hash: [UInt8](repeating: 0, count: EventLog.hashByteCount))
}

/// Where an event went.
public struct EventPosition: Sendable, Equatable {
    public let globalSequence: UInt64
    public let sequence: UInt64
}

/// What checking a tenant's chain found.
public enum EventChainStatus: Sendable, Equatable {
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
}

/// tenant ‖ 0x00 ‖ sequence (8 bytes big-endian).
struct EventKey: StoreKey {
    var tenant: Text
    var sequence: UInt64

    func write(into key: inout KeyWriter) {
        key.append(terminated: tenant)
        key.append(bigEndian: sequence)
    }
}

extension WriteTransaction {
    /// Appends to the tenant's chain, in the same transaction as the change the event tells of. Two puts.
    @discardableResult
    public func appendEvent(tenant: Text, _ payload: [UInt8]) throws(StoreError) -> EventPosition {
        let head = try reading.eventHead(tenant: tenant)
        let position = EventPosition(globalSequence: try globalSequence() + 1, sequence: head.sequence + 1)
        var record: [UInt8] = []
        record.reserveCapacity(EventLog.headerByteCount + payload.count)
        record.append(bigEndian: position.globalSequence)
        record += head.hash
        record += payload
        let key = EventKey(tenant: tenant, sequence: position.sequence)
        try put(Schema.events, key, record)
        var newHead: [UInt8] = []
        newHead.append(bigEndian: position.sequence)
        newHead += try reading.hash(of: record, under: key)
        try put(Schema.eventHeads, TenantPrefix(tenant), newHead)
        batch.sequence = position.globalSequence
        return position
    }

    /// Deletes up to `limit` of the tenant's oldest events up to `sequence`; returns how many. What is left verifies
    /// from the hash of the last one deleted, which the caller keeps.
    public func deleteEvents(tenant: Text, through sequence: UInt64, limit: Int) throws -> Int {
        var sequences: [UInt64] = []
        try reading.scanEvents(tenant: tenant, limit: limit) { event in
            if event.sequence <= sequence { sequences.append(event.sequence) }
            return event.sequence < sequence
        }
        for sequence in sequences { try delete(Schema.events, EventKey(tenant: tenant, sequence: sequence)) }
        return sequences.count
    }

    private func globalSequence() throws(StoreError) -> UInt64 {
        if let sequence = batch.sequence { return sequence }
        return try reading.newestEvent()
    }

    /// Once per batch with events, before its commit.
    func writeSequence() throws(StoreError) {
        guard let sequence = batch.sequence else { return }
        var bytes: [UInt8] = []
        bytes.append(bigEndian: sequence)
        try put(Schema.meta, EventLog.sequenceKey, bytes)
    }
}

extension ReadTransaction {
    /// The number of the newest event of all tenants.
    func newestEvent() throws(StoreError) -> UInt64 {
        guard let bytes = try get(Schema.meta, EventLog.sequenceKey) else { return 0 }
        guard bytes.count == 8 else { throw corrupt(Schema.meta.id) }
        return bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }

    public func eventHead(tenant: Text) throws(StoreError) -> EventHead {
        guard let bytes = try get(Schema.eventHeads, TenantPrefix(tenant)) else { return .empty }
        guard bytes.count == 8 + EventLog.hashByteCount else { throw corrupt(Schema.eventHeads.id) }
        let sequence = bytes.withUnsafeBytes { UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self)) }
        return EventHead(sequence: sequence, hash: [UInt8](bytes[8...]))
    }

    /// The tenant's events from `sequence` on, in order, until `body` returns false or `limit` is reached; from the
    /// newest backwards if `reversed`, `sequence` then being the highest.
    public func scanEvents(
        tenant: Text, from sequence: UInt64? = nil, reversed: Bool = false, limit: Int = .max,
        _ body: (StoredEvent) throws -> Bool
    ) throws {
        var start = ScanStart.first
        if let sequence {
            start = .at(try withBytes(of: EventKey(tenant: tenant, sequence: sequence)) { [UInt8]($0) })
        }
        let prefix = TenantPrefix(tenant)
        try scan(Schema.events, prefix: prefix, from: start, reversed: reversed, limit: limit) { key, record in
            guard let event = StoredEvent(key: key, record: record) else { throw corrupt(Schema.events.id) }
            return try body(event)
        }
    }

    /// Follows the tenant's chain from the event after `checkpoint` to the head.
    public func verifyEvents(tenant: Text, after checkpoint: EventHead = .empty) throws -> EventChainStatus {
        var expected = checkpoint
        var broken: UInt64?
        var count = 0
        try scanEvents(tenant: tenant, from: checkpoint.sequence + 1) { event in
            guard event.sequence == expected.sequence + 1, event.previousHash == expected.hash else {
                // A wrong reference means that the event it refers to was altered, unless there is none.
                let isAltered = event.sequence == expected.sequence + 1 && expected != checkpoint
                broken = expected.sequence + (isAltered ? 0 : 1)
                return false
            }
            expected = EventHead(sequence: event.sequence, hash: try hash(of: event, tenant: tenant))
            count += 1
            return true
        }
        if let broken { return .broken(sequence: broken) }
        let head = try eventHead(tenant: tenant)
        if head.sequence != expected.sequence { return .broken(sequence: expected.sequence + 1) }
        return head.hash == expected.hash ? .intact(count: count) : .broken(sequence: head.sequence)
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
    fileprivate init?(key: UnsafeRawBufferPointer, record: UnsafeRawBufferPointer) {
        guard key.count >= 8, record.count >= EventLog.headerByteCount else { return nil }
        self.sequence = UInt64(bigEndian: key.loadUnaligned(fromByteOffset: key.count - 8, as: UInt64.self))
        self.globalSequence = UInt64(bigEndian: record.loadUnaligned(as: UInt64.self))
        self.previousHash = [UInt8](record[8..<EventLog.headerByteCount])
        self.payload = [UInt8](record[EventLog.headerByteCount...])
    }
}

extension [UInt8] {
    fileprivate mutating func append(bigEndian value: UInt64) {
        Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
    }
}
