import Base
internal import CLMDB
import Messages

/// The space that the rows of one tenant take in the store.
///
/// Bytes are those of keys and stored values, and `rowOverhead` for each row. Pages, free space and the rows by which
/// the store finds others by time are not counted: the file is up to twice as large.
public struct TenantUsage: Sendable, Equatable {
    public var byteCount: Int64
    public var rowCount: Int64
    /// Rows of the one table whose owner is `.countedKeyPrefix`.
    public var countedRowCount: Int64

    /// The bytes that LMDB keeps beside a row: its place in the page and its header.
    public static let rowOverhead = 16

    public init(byteCount: Int64 = 0, rowCount: Int64 = 0, countedRowCount: Int64 = 0) {
        self.byteCount = byteCount
        self.rowCount = rowCount
        self.countedRowCount = countedRowCount
    }

    init(_ stored: StoredTenantUsage) {
        self.init(byteCount: stored.bytes, rowCount: stored.rows, countedRowCount: stored.countedRows)
    }

    var stored: StoredTenantUsage {
        StoredTenantUsage(bytes: byteCount, rows: rowCount, countedRows: countedRowCount)
    }

    mutating func add(_ other: TenantUsage) {
        byteCount &+= other.byteCount
        rowCount &+= other.rowCount
        countedRowCount &+= other.countedRowCount
    }

    mutating func subtract(_ other: TenantUsage) {
        byteCount &-= other.byteCount
        rowCount &-= other.rowCount
        countedRowCount &-= other.countedRowCount
    }
}

/// The usage that the writes of one transaction add to tenants. The writer's thread only.
///
/// The rows of one write mostly belong to one tenant. Its sums are kept apart from the others', so that a put costs a
/// comparison and two additions.
struct UsageChanges {
    /// The bytes added for all tenants since the transaction began. What one request added is the difference.
    private(set) var addedByteCount: Int64 = 0
    private var current: [UInt8] = []
    private var currentUsage = TenantUsage()
    private var others: [[UInt8]: TenantUsage] = [:]
    /// The tenants whose changes are not known for certain, because rows that went were damaged.
    private var uncertain: Set<[UInt8]> = []

    mutating func removeAll() {
        uncertain.removeAll()
        addedByteCount = 0
        currentUsage = TenantUsage()
        others.removeAll(keepingCapacity: true)
    }

    /// A row of `byteCount` bytes was put in place of one of `replaced` bytes, or of none.
    mutating func put(
        tenant: UnsafeRawBufferPointer, owner: RowOwner, key: UnsafeRawBufferPointer, byteCount: Int,
        replacing replaced: Int?
    ) {
        select(tenant)
        if let replaced {
            add(TenantUsage(byteCount: Int64(byteCount - replaced)))
        } else {
            add(Self.use(of: key, owner: owner, byteCount: byteCount))
        }
    }

    /// The usage of a row, for `subtract`, which then applies to the same tenant.
    mutating func use(
        of tenant: UnsafeRawBufferPointer, owner: RowOwner, key: UnsafeRawBufferPointer, byteCount: Int
    ) -> TenantUsage {
        select(tenant)
        return Self.use(of: key, owner: owner, byteCount: byteCount)
    }

    /// Notes that the row for which `use` was called is gone.
    mutating func subtract(_ usage: TenantUsage) {
        add(
            TenantUsage(
                byteCount: -usage.byteCount, rowCount: -usage.rowCount, countedRowCount: -usage.countedRowCount))
    }

    /// Notes that a damaged row of the tenant was replaced or deleted, and what it counted for is not known.
    mutating func makeUncertain(_ tenant: UnsafeRawBufferPointer) {
        select(tenant)
        uncertain.insert(current)
    }

    func isUncertain(_ tenant: [UInt8]) -> Bool { !uncertain.isEmpty && uncertain.contains(tenant) }

    /// Every tenant with a change, or an uncertain one.
    var all: [(tenant: [UInt8], usage: TenantUsage)] {
        var sums = others
        sums[current, default: TenantUsage()].add(currentUsage)
        return sums.filter { $0.value != TenantUsage() || isUncertain($0.key) }.map { ($0.key, $0.value) }
    }

    private mutating func add(_ usage: TenantUsage) {
        currentUsage.add(usage)
        addedByteCount &+= usage.byteCount
    }

    private mutating func select(_ tenant: UnsafeRawBufferPointer) {
        guard !current.elementsEqual(tenant) else { return }
        others[current, default: TenantUsage()].add(currentUsage)
        current = [UInt8](tenant)
        currentUsage = TenantUsage()
    }

    private static func use(of key: UnsafeRawBufferPointer, owner: RowOwner, byteCount: Int) -> TenantUsage {
        TenantUsage(
            byteCount: Int64(key.count + byteCount + TenantUsage.rowOverhead), rowCount: 1,
            countedRowCount: owner == .countedKeyPrefix ? 1 : 0)
    }
}

extension RowOwner {
    /// Far above the length of any tenant's id. A damaged row may hold anything in the id's place.
    private static var tenantByteCountMax: Int { 256 }

    /// The id of the tenant that a row belongs to, not copied; nil if the row belongs to no tenant.
    func tenant(key: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        switch self {
        case .nobody: return nil
        case .keyPrefix, .countedKeyPrefix:
            guard let end = key.firstIndex(of: 0) else { return nil }
            return UnsafeRawBufferPointer(rebasing: key[..<end])
        case .field(let number):
            guard let tenant = ProtobufField.bytes(number, in: payload), tenant.count <= Self.tenantByteCountMax,
                !tenant.contains(0)
            else { return nil }
            return tenant
        }
    }
}

/// One field of an encoded record, found without decoding it.
enum ProtobufField {
    /// The bytes of field `number`; empty if the field is not there, because proto3 leaves an empty text out. Nil for
    /// bytes that are no record.
    static func bytes(_ number: Int, in record: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        var rest = record[...]
        while !rest.isEmpty {
            guard let tag = varint(&rest) else { return nil }
            switch tag & 7 {
            case 0: guard varint(&rest) != nil else { return nil }
            case 1: rest = rest.dropFirst(8)
            case 5: rest = rest.dropFirst(4)
            case 2:
                guard let count = varint(&rest), count <= UInt64(rest.count) else { return nil }
                let end = rest.startIndex + Int(count)
                if Int(truncatingIfNeeded: tag >> 3) == number { return UnsafeRawBufferPointer(rebasing: rest[..<end]) }
                rest = rest[end...]
            default: return nil
            }
        }
        return UnsafeRawBufferPointer(start: nil, count: 0)
    }

    private static func varint(_ rest: inout Slice<UnsafeRawBufferPointer>) -> UInt64? {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while shift < 64, let byte = rest.popFirst() {
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
            shift += 7
        }
        return nil
    }
}
