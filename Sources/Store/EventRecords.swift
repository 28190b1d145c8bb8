public import Base

/// One event of a tenant as the log stores it.
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

/// The place where a tenant's log begins: the last event that was deleted. The remaining events verify from its hash.
/// The record's MAC is the checkpoint's signature, because making it takes the master key.
public struct EventCheckpoint: Sendable, Equatable {
    public let head: EventHead
    public let cutAt: Timestamp
}

/// The result of following a tenant's chain.
public enum EventChainStatus: Sendable, Equatable {
    /// Everything from the checkpoint on, `count` events, is what was committed.
    case intact(count: Int)
    /// The event with this sequence is missing, altered, or not the one from which its successor or the head was made.
    case broken(sequence: UInt64)
}

/// The log's layout. An event's hash covers its key (tenant ‖ 0x00 ‖ sequence) and its whole record.
public enum EventLog {
    public static let hashByteCount = 32
    static let headerByteCount = 8 + hashByteCount
    static let sequenceKey = [UInt8]("sequence".utf8)
    /// A tenant of this length and a sequence together make a key of allowed length.
    static let tenantByteCountMax = 256

    /// global sequence (8) ‖ previous hash (32) ‖ payload.
    static func record(globalSequence: UInt64, previousHash: [UInt8], payload: [UInt8]) -> [UInt8] {
        var record: [UInt8] = []
        record.reserveCapacity(headerByteCount + payload.count)
        record.append(bigEndian: globalSequence)
        record += previousHash
        record += payload
        return record
    }
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

    /// The size of the row that it will have.
    var rowByteCount: Int {
        tenant.byteCount + 1 + 8 + RecordSeal.byteCount + EventLog.headerByteCount + payload.count
            + TenantUsage.rowOverhead
    }
}

extension StoredEvent {
    init?(_ key: EventKey, record: UnsafeRawBufferPointer) {
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
        self.init(sequence: bytes.prefix(8).bigEndianNumber, hash: [UInt8](bytes.dropFirst(8)))
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
        let microseconds = Int64(bitPattern: bytes.suffix(8).bigEndianNumber)
        self.init(head: head, cutAt: Timestamp(microseconds: microseconds))
    }

    var encoded: [UInt8] {
        var bytes = head.encoded
        bytes.append(bigEndian: UInt64(bitPattern: cutAt.microseconds))
        return bytes
    }
}
