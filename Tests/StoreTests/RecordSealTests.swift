import Base
import Store
import TestSupport
import Testing

@Suite struct RecordSealTests {
    private static let first = [UInt8](repeating: 0xA1, count: 200)
    private static let second = [UInt8](repeating: 0xB2, count: 200)

    /// Makes a store with two records, lets `damage` change its file, and passes the reopened store to `body`.
    private func withDamage(_ damage: (inout [UInt8]) -> Void, _ body: (Store) throws -> Void) throws {
        try withTemporaryDirectory { directory in
            let store = try openTestStore(at: directory, tables: testTables)
            try store.writeBlocking { transaction in
                try transaction.put(blobs, [1], Self.first)
                try transaction.put(blobs, [2], Self.second)
            }
            store.close()
            var file = contents(of: directory + "/data.mdb")
            damage(&file)
            write(file, to: directory + "/data.mdb")
            let again = try openTestStore(at: directory, tables: testTables)
            defer { again.close() }
            try body(again)
        }
    }

    private func offset(of value: [UInt8], in file: [UInt8]) -> Int {
        guard let start = file.indices.first(where: { file[$0...].starts(with: value) }) else {
            preconditionFailure("the value is not in the file")
        }
        return start
    }

    /// The positions reach from the version byte over the MAC to the payload's last byte.
    @Test(arguments: [-17, -16, -1, 0, 100, 199])
    func oneFlippedBitIsCorruptAndNeverNotFound(position: Int) throws {
        try withDamage {
            $0[offset(of: Self.first, in: $0) + position] ^= 1
        } _: { store throws in
            let corrupt = StoreError.corrupt(table: "blobs")
            #expect(throws: corrupt) { try store.read { try $0.get(blobs, [1]) } }
            #expect(throws: corrupt) { try store.read { try $0.exists(blobs, [1]) } }
            #expect(throws: corrupt) { try store.read { try $0.withValue(blobs, [1]) { _ in } } }
            #expect(throws: corrupt) { try store.read { try $0.scan(blobs) { _ in true } } }
            #expect(throws: corrupt) { try store.writeBlocking { try $0.get(blobs, [1]) } }
            #expect(try store.read { try $0.get(blobs, [2]) } == Self.second)
            #expect(try store.writeBlocking { try $0.delete(blobs, [1]) })
            #expect(try store.read { try $0.get(blobs, [1]) } == nil)
        }
    }

    @Test func swappedRecordsAreCorrupt() throws {
        try withDamage { file in
            let first = offset(of: Self.first, in: file) - 17
            let second = offset(of: Self.second, in: file) - 17
            for index in 0..<217 { file.swapAt(first + index, second + index) }
        } _: { store throws in
            for key in [[1], [2]] as [[UInt8]] {
                #expect(throws: StoreError.corrupt(table: "blobs")) { try store.read { try $0.get(blobs, key) } }
            }
        }
    }

    @Test func aRecordThatDoesNotDecodeIsCorrupt() throws {
        try withTemporaryStore(tables: testTables) { store in
            let key = UserKey(tenant: "a", id: 1)
            try store.writeBlocking { transaction in
                try [1, 2, 3].withUnsafeBytes { try transaction.put(users, key, bytes: .init(rebasing: $0[..<3])) }
            }
            #expect(throws: StoreError.corrupt(table: "users")) { try store.read { try $0.get(users, key) } }
            #expect(try store.read { try $0.exists(users, key) })
        }
    }
}
