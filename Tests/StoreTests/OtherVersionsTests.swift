import TestSupport
import Testing

@testable import Store

/// Stores that servers of other versions wrote to.
@Suite struct OtherVersionsTests {
    @Test func aNewerSchemaIsRefused() throws {
        try withTemporaryDirectory { directory in
            let store = try openTestStore(at: directory, tables: testTables)
            let newer = Schema.version + 1
            try store.writeBlocking {
                try $0.put(Schema.meta, bytes("schema"), withUnsafeBytes(of: newer.bigEndian) { [UInt8]($0) })
            }
            store.close()
            #expect(throws: StoreError.newerSchema(found: newer, supported: Schema.version)) {
                _ = try openTestStore(at: directory, tables: testTables)
            }
        }
    }

    /// A newer version's table may stay as long as it holds nothing.
    @Test func rowsOfAnUnknownTableAreRefused() throws {
        let newer = Table<[UInt8], [UInt8]>(id: 200, name: "newer", owner: .nobody, purge: .noTenant)
        try withTemporaryDirectory { directory in
            let newerTables = testTables + [newer.declaration]
            func change(
                _ tables: [TableDeclaration], _ edit: @escaping @Sendable (borrowing WriteTransaction) throws -> Void
            ) throws {
                let store = try openTestStore(at: directory, tables: tables)
                defer { store.close() }
                try store.writeBlocking { try edit($0) }
            }
            try change(newerTables) { _ in }
            try change(testTables) { _ in }
            try change(newerTables) { try $0.put(newer, bytes("row"), [1]) }
            #expect(throws: StoreError.unknownTable("newer")) { try change(testTables) { _ in } }
            try change(newerTables) { try $0.delete(newer, bytes("row")) }
            try change(testTables) { _ in }
        }
    }

    private func schemaVersion(_ store: Store) throws -> [UInt8]? {
        try store.read { try $0.get(Schema.meta, bytes("schema")) }
    }

    /// For every older version, the store opens, and from then on no server of that version opens it.
    @Test func anOlderSchemaOpensAndIsMarkedWithOurs() throws {
        let ours = withUnsafeBytes(of: Schema.version.bigEndian) { [UInt8]($0) }
        for older in 0..<Schema.version {
            try withTemporaryDirectory { directory in
                let store = try openTestStore(at: directory, tables: testTables)
                try store.writeBlocking {
                    try $0.put(Schema.meta, bytes("schema"), withUnsafeBytes(of: older.bigEndian) { [UInt8]($0) })
                    try $0.put(blobs, [1], [2])
                }
                store.close()
                for _ in 0..<2 {
                    let upgraded = try openTestStore(at: directory, tables: testTables)
                    defer { upgraded.close() }
                    #expect(try schemaVersion(upgraded) == ours)
                    #expect(try upgraded.read { try $0.get(blobs, [1]) } == [2])
                }
            }
        }
        // Servers of version 1 would mail decoys, and links without their codes, from what later ones keep in the
        // outbox.
        #expect(Schema.version >= 2)
    }
}
