import Base
import Messages
import TestSupport
import Testing

@testable import Store

/// Long values of a damaged store, and of a full one.
@Suite struct LongValueFaultTests {
    enum Damage: CaseIterable { case missing, swapped, older, longer }

    /// A row cannot be read whose pieces are not what was put, and `store verify` says so.
    @Test(arguments: Damage.allCases)
    func aDamagedPieceIsNoticed(_ damage: Damage) throws {
        try withTemporaryDirectory { directory in
            let store = try openTestStore(at: directory, tables: LongValueTests.tables)
            try store.writeBlocking { transaction in
                try transaction.put(blobs, [1], [UInt8](repeating: 1, count: 20_000))
                try transaction.put(blobs, [2], [UInt8](repeating: 2, count: 3))
            }
            let keys = try pieceKeys(store)
            let older = try store.read { try $0.get(Schema.pieces, keys[1]) } ?? []
            try store.writeBlocking { try $0.put(blobs, [1], [UInt8](repeating: 3, count: 20_000)) }
            try store.writeBlocking { transaction in
                switch damage {
                case .missing: try transaction.delete(Schema.pieces, keys[1])
                case .swapped:
                    try transaction.put(Schema.pieces, keys[1], transaction.get(Schema.pieces, keys[4]) ?? [])
                case .older: try transaction.put(Schema.pieces, keys[1], older)
                case .longer: try transaction.put(Schema.pieces, keys[4], [UInt8](repeating: 3, count: 4_063))
                }
            }
            #expect(throws: StoreError.corrupt(table: "blobs")) { try store.read { _ = try $0.get(blobs, [1]) } }
            #expect(throws: StoreError.corrupt(table: "blobs")) { try store.read { try $0.scan(blobs) { _ in true } } }
            #expect(try store.read { try $0.get(blobs, [2]) } == [2, 2, 2])
            store.close()
            let report = try LongValueTests.report(directory)
            #expect(!report.isSound)
            #expect(report.lines.contains { $0.contains("blobs: long values that are not whole") })
            // The row can be replaced all the same, and deleted.
            let again = try openTestStore(at: directory, tables: LongValueTests.tables)
            defer { again.close() }
            try again.writeBlocking { try $0.put(blobs, [1], [UInt8](repeating: 4, count: 20_000)) }
            #expect(try again.read { try $0.get(blobs, [1]) } == [UInt8](repeating: 4, count: 20_000))
            try again.writeBlocking { _ = try $0.delete(blobs, [1]) }
            #expect(try LongValueTests.pieceCount(again) == 0)
        }
    }

    private func pieceKeys(_ store: Store) throws -> [[UInt8]] {
        try store.read { try $0.keys(of: Schema.pieces, after: nil, limit: 100) }
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

    /// A write that finds the store full in the middle of its pieces leaves nothing, and the last page is enough to
    /// delete.
    @Test func aFullStoreHasNoHalfValues() throws {
        try withSmallStore(mapByteCount: 8 << 20) { small in
            var count: UInt16 = 0
            @Sendable func key(_ number: UInt16) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { [UInt8]($0) } }
            @Sendable func value(_ number: UInt16) -> [UInt8] {
                [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 60_000 + Int(number))
            }
            do {
                while true {
                    try small.store.writeBlocking { [count] in try $0.put(blobs, key(count), value(count)) }
                    count += 1
                }
            } catch StoreError.full {}
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
