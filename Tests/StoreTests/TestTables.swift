import Base
import Glibc
import Messages
import Store

/// A message written by hand: id (8 bytes), then the name.
struct TestRecord: Message {
    var id: UInt64 = 0
    var name: [UInt8] = []

    init() {}

    init(_ id: UInt64, _ name: String = "") {
        self.id = id
        self.name = [UInt8](name.utf8)
    }

    init(decoding bytes: UnsafeRawBufferPointer, limits: MessageLimits) throws(DecodeError) {
        guard bytes.count >= 8 else { throw .malformed }
        self.id = UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self))
        self.name = [UInt8](bytes[8...])
    }

    var encodedByteCount: Int { 8 + name.count }

    func encode(into buffer: inout ByteBuffer) {
        withUnsafeBytes(of: id.bigEndian) { buffer.append(contentsOf: $0) }
        buffer.append(contentsOf: name)
    }
}

struct UserKey: StoreKey {
    var tenant: Text
    var id: UInt64

    init(tenant: Text, id: UInt64) {
        self.tenant = tenant
        self.id = id
    }

    init?(stored bytes: UnsafeRawBufferPointer) {
        var key = KeyReader(bytes)
        guard let tenant = key.terminated(), let id = key.bigEndian(), key.isAtEnd else { return nil }
        self.init(tenant: tenant, id: id)
    }

    func write(into key: inout KeyWriter) {
        key.append(terminated: tenant)
        key.append(bigEndian: id)
    }
}

let users = Table<UserKey, TestRecord>(id: 16, name: "users", owner: .nobody, purge: .noTenant)
let blobs = Table<[UInt8], [UInt8]>(id: 17, name: "blobs", owner: .nobody, purge: .noTenant)
let ending = Table<[UInt8], EndingRecord>(id: 18, name: "ending", owner: .nobody, purge: .noTenant)
let testTables = [users.declaration, blobs.declaration, ending.declaration]

/// A record that ends by itself, in the way that it says.
struct EndingRecord: Message, ExpiringRecord {
    enum End: Equatable {
        case isDeleted
        /// The record is scheduled again, for this time.
        case isPutOff(until: Timestamp)
        case fails
        /// The record is deleted, which takes two milliseconds.
        case takesLong
    }

    struct Failed: Error {}

    var end = End.isDeleted

    init() {}

    init(_ end: End) { self.end = end }

    init(decoding bytes: UnsafeRawBufferPointer, limits: MessageLimits) throws(DecodeError) {
        guard bytes.count == 8 else { throw .malformed }
        let time = Int64(bitPattern: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)))
        self.end =
            time == 0
            ? .isDeleted
            : time == -1 ? .fails : time == -2 ? .takesLong : .isPutOff(until: Timestamp(microseconds: time))
    }

    var encodedByteCount: Int { 8 }

    func encode(into buffer: inout ByteBuffer) {
        let time: Int64 =
            switch end {
            case .isDeleted: 0
            case .fails: -1
            case .takesLong: -2
            case .isPutOff(let time): time.microseconds
            }
        withUnsafeBytes(of: UInt64(bitPattern: time).bigEndian) { buffer.append(contentsOf: $0) }
    }

    static func expire(
        _ key: [UInt8], of table: Table<[UInt8], Self>, in transaction: borrowing WriteTransaction, now: Timestamp
    ) throws {
        switch try transaction.get(table, key)?.end {
        case .isPutOff(let time) where time > now: try transaction.scheduleExpiry(at: time, table, key)
        case .fails: throw Failed()
        case .takesLong:
            usleep(2_000)
            try transaction.delete(table, key)
        default: try transaction.delete(table, key)
        }
    }
}

/// SplitMix64: the same numbers for the same seed.
struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64

    init(seed: UInt64) { self.state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }

    mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }

    mutating func bytes(_ count: Int, below bound: Int = 256) -> [UInt8] {
        (0..<count).map { _ in UInt8(below(bound)) }
    }
}

func bytes(_ text: String) -> [UInt8] { [UInt8](text.utf8) }
