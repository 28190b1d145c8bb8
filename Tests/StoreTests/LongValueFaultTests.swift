import Base
import Glibc
import Messages
import TestSupport
import Testing

@testable import Store

/// Long values of a damaged store, and of a full one.
@Suite struct LongValueFaultTests {
    typealias Damage = DamagedLongValue.Damage
    typealias Owner = DamagedLongValue.Owner

    /// A row cannot be read whose pieces are not what was put, and `store verify` says so.
    @Test(arguments: Damage.allCases, Owner.allCases)
    func aDamagedLongValueIsNoticed(_ damage: Damage, _ owner: Owner) throws {
        try withTemporaryDirectory { directory in
            let damaged = DamagedLongValue(directory: directory, owner: owner)
            try damaged.make(damage)
            let store = try damaged.open()
            defer { store.close() }
            let (table, failure) = (damaged.table, StoreError.corrupt(table: damaged.table.name.description))
            #expect(throws: failure) { try store.read { _ = try $0.get(table, damaged.key(1)) } }
            #expect(throws: failure) { try store.read { try $0.scan(table) { _ in true } } }
            #expect(try store.read { try $0.get(table, damaged.key(2)) } == damaged.value(3, byteCount: 30))
            store.close()
            let report = try damaged.report()
            #expect(!report.isSound)
            let isOfMark = [.markVersion, .markMAC, .markLength].contains(damage)
            let finding = isOfMark ? "record without its MAC" : "long values that are not whole"
            #expect(report.lines.contains { $0.contains("\(table.name): \(finding)") }, "\(report.lines)")
            // A piece is a record of its own, and may be a sound one. Whoever joins a cluster looks further.
            let configuration = StoreConfiguration(directory: directory, tables: LongValueTests.tables)
            let pages = try StoreReport(pagesOf: configuration, authenticator: TestAuthenticator())
            let records = try StoreReport(
                recordsOf: configuration, authenticator: TestAuthenticator(), eventHash: testEventHash)
            #expect(pages.isSound != isOfMark)
            #expect(!records.isSound)
        }
    }

    @Test func aPieceOfNoValueIsNoticed() throws {
        try withTemporaryDirectory { directory in
            let store = try openTestStore(at: directory, tables: LongValueTests.tables)
            try store.writeBlocking { transaction in
                try transaction.put(blobs, [1], [UInt8](repeating: 1, count: 20_000))
                try transaction.put(Schema.pieces, [UInt8](repeating: 1, count: 20), [1])
            }
            store.close()
            let report = try LongValueTests.report(directory)
            #expect(!report.isSound)
            #expect(report.lines.contains { $0.contains("pieces: pieces of no value") })
        }
    }

    /// A mark counts for nothing under another key, or in another table.
    @Test func aMarkIsBoundToItsRow() throws {
        let authenticator = TestAuthenticator()
        var stored = [UInt8](repeating: 0, count: LongValueMark.byteCount)
        let (key, other): ([UInt8], [UInt8]) = ([1, 2], [1, 3])
        stored.withUnsafeMutableBytes { target in
            key.withUnsafeBytes { key in
                guard let address = target.baseAddress else { return }
                LongValueMark(tag: (5, 6), valueByteCount: 70_000).seal(
                    into: address, table: 17, key: key, authenticator: authenticator)
            }
        }
        func valueByteCount(_ stored: [UInt8], _ table: UInt8, _ key: [UInt8]) -> Int? {
            stored.withUnsafeBytes { stored in
                key.withUnsafeBytes {
                    LongValueMark.open(stored, table: table, key: $0, authenticator: authenticator)?.valueByteCount
                }
            }
        }
        #expect(valueByteCount(stored, 17, key) == 70_000)
        #expect(valueByteCount(stored, 17, other) == nil)
        #expect(valueByteCount(stored, 16, key) == nil)
        for index in stored.indices {
            var damaged = stored
            damaged[index] ^= 1
            #expect(valueByteCount(damaged, 17, key) == nil, "byte \(index)")
        }
        #expect(valueByteCount(Array(stored.dropLast()), 17, key) == nil)
    }

    /// A write that finds the store full in the middle of its pieces leaves nothing, and what all others leave of the
    /// reserve is enough to delete.
    @Test func aFullStoreHasNoHalfValues() throws {
        try withSmallStore(mapByteCount: 8 << 20) { small in
            var count: UInt16 = 0
            @Sendable func key(_ number: UInt16) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { [UInt8]($0) } }
            @Sendable func value(_ number: UInt16) -> [UInt8] {
                [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 60_000 + Int(number))
            }
            for purpose in [.growth, .session, .relief] as [WritePurpose] {
                do {
                    while true {
                        try WritePurpose.$current.withValue(purpose) {
                            try small.store.writeBlocking { [count] in try $0.put(blobs, key(count), value(count)) }
                        }
                        count += 1
                    }
                } catch StoreError.full {}
            }
            #expect(count > 50)
            // One write that is longer than the whole file runs into the map's end.
            #expect(throws: StoreError.full) {
                try WritePurpose.$current.withValue(.removal) {
                    try small.store.writeBlocking { transaction in
                        for number in 0..<UInt16(200) { try transaction.put(blobs, key(1_000 + number), value(number)) }
                    }
                }
            }
            for number in 0..<count {
                #expect(try small.store.read { try $0.get(blobs, key(number)) } == value(number))
            }
            let pieces = (0..<count).map { (value($0).count + 4_062) / 4_063 }.reduce(0, +)
            #expect(try LongValueTests.pieceCount(small.store) == pieces)
            for number in 0..<count {
                try WritePurpose.$current.withValue(.removal) {
                    try small.store.writeBlocking { _ = try $0.delete(blobs, key(number)) }
                }
            }
            #expect(try LongValueTests.pieceCount(small.store) == 0)
            #expect(small.troubles.all.last == "none")
        }
    }
}
