import Base
import Messages
import Synchronization
import TestSupport
import Testing

@testable import Store

/// Values that do not fit into one page of the file: they lie in pieces, and nobody outside of the store notices.
@Suite struct LongValueTests {
    static let keyed = Table<UserKey, [UInt8]>(id: 30, name: "keyed", owner: .keyPrefix, purge: .withTenant)
    static let byField = Table<[UInt8], StoredSession>(
        id: 31, name: "by_field", owner: .field(1), purge: .otherwise("a test's"))
    static let tables = testTables + [keyed.declaration, byField.declaration]
    /// The longest value that lies in one page of 4,096 bytes: LMDB's head takes 16, the MAC 17.
    static let shortMax = 4_096 - 16 - 17

    static func pieceCount(_ store: Store) throws -> Int { try store.read { try $0.count(Schema.pieces) } }

    static func report(_ directory: String) throws -> StoreReport {
        try StoreReport(
            StoreConfiguration(directory: directory, tables: tables), authenticator: TestAuthenticator(),
            eventHash: testEventHash, records: { _, _ in })
    }

    /// Calls `body` with a store that puts no values in pieces, as servers of version 4 did, and marks it with that
    /// version.
    static func asVersion4(_ directory: String, _ body: (Store) throws -> Void) throws {
        let store = try openTestStore(at: directory, tables: tables)
        defer { store.close() }
        store.environment.storesPieces.store(false, ordering: .relaxed)
        let version = withUnsafeBytes(of: UInt32(4).bigEndian) { [UInt8]($0) }
        try store.writeBlocking {
            for key in ["schema", "upgraded"] { try $0.put(Schema.meta, bytes(key), version) }
        }
        try body(store)
    }

    @Test func onlyAValueBeyondOnePageIsInPieces() throws {
        try withTemporaryStore(tables: Self.tables) { store in
            let lengths = [
                (0, 0), (1, 0), (Self.shortMax, 0), (Self.shortMax + 1, 2), (2 * Self.shortMax, 2),
                (2 * Self.shortMax + 1, 3), (65_536, 17), (10, 0),
            ]
            for (length, pieces) in lengths {
                let value = [UInt8](repeating: 7, count: length)
                try store.writeBlocking { try $0.put(blobs, [1], value) }
                #expect(try store.read { try $0.get(blobs, [1]) } == value)
                #expect(try Self.pieceCount(store) == pieces, "\(length)")
            }
        }
    }

    /// This is what bounds the writer: LMDB never looks for free pages that lie side by side.
    @Test func noValueTakesMoreThanOnePage() throws {
        try withTemporaryDirectory { directory in
            let store = try openTestStore(at: directory, tables: Self.tables)
            defer { store.close() }
            var random = SeededGenerator(seed: 3)
            for number in 0..<UInt8(100) {
                let value = random.bytes(random.below(40_000))
                try store.writeBlocking { try $0.put(blobs, [number], value) }
            }
            guard let file = try DataFile(path: DataFile.path(in: directory)) else { throw StoreError.missing }
            let walk = try PageWalk(file)
            let tables = walk.tables(try walk.roots().main)
            #expect(tables.first { $0.name == "pieces" }?.overflowPageCount ?? 0 > 300)
            for table in tables { #expect(table.overflowPageCount <= table.rowCount, "\(table.name)") }
        }
    }

    @Test func aLongValueIsReadInEveryWay() throws {
        try withTemporaryStore(tables: Self.tables) { store in
            let values = (0..<UInt8(5)).map { [UInt8](repeating: $0, count: 5_000 + Int($0) * 4_000) }
            try store.writeBlocking { transaction in
                for (index, value) in values.enumerated() { try transaction.put(blobs, [UInt8(index)], value) }
                // The writer sees its own values, and does not replace them with a put that may not.
                #expect(try transaction.get(blobs, [4]) == values[4])
                #expect(try !transaction.put(ifAbsent: blobs, [4], [1]))
                #expect(try transaction.get(blobs, [4]) == values[4])
            }
            try store.read { transaction in
                let exists = try transaction.exists(blobs, [2])
                let inside = try transaction.withValue(blobs, [2]) { [UInt8]($0) }
                #expect(exists && inside == values[2])
                let borrowed = try transaction.borrowedValue(blobs, [1])
                let bounds = PageBounds(itemMax: 10, limits: Limits())
                let page = try transaction.page(of: blobs, from: .first, bounds: bounds) { .item($0.value) }
                var reversed: [[UInt8]] = []
                try transaction.scan(blobs, reversed: true) { row in
                    reversed.append([UInt8](row.value))
                    return true
                }
                #expect(reversed == values.reversed())
                // Borrowed bytes and a page's items stay until the transaction ends.
                #expect(page.items.map { [UInt8]($0) } == values)
                #expect(borrowed.map { [UInt8]($0) } == values[1])
            }
        }
    }

    @Test func aStoreOfVersion4OpensAndKeepsItsLongValues() throws {
        try withTemporaryDirectory { directory in
            let long = [UInt8](repeating: 5, count: 30_000)
            try Self.asVersion4(directory) { store in
                try store.writeBlocking { for number in 0..<UInt8(4) { try $0.put(blobs, [number], long) } }
                #expect(try Self.pieceCount(store) == 0)
            }
            #expect(try Self.report(directory).isSound)
            let store = try openTestStore(at: directory, tables: Self.tables)
            defer { store.close() }
            #expect(try store.read { try $0.get(blobs, [0]) } == long)
            try store.writeBlocking { transaction in
                try transaction.put(blobs, [0], long + [1])
                try transaction.put(blobs, [1], [1])
                #expect(try transaction.delete(blobs, [2]))
            }
            #expect(try Self.pieceCount(store) == 8)
            #expect(try store.read { try $0.get(blobs, [0]) } == long + [1])
            #expect(try store.read { try $0.get(blobs, [3]) } == long)
        }
        #expect(Schema.version > 4, "a server of version 4 would take a long value for a damaged one")
    }

    /// The nodes of a cluster compare their rows, and some may have them from before.
    @Test func piecesAreInNeitherDigestNorSum() throws {
        var digests: [[StoreDigest.Table]] = []
        var sums: [TenantUsage] = []
        for isOld in [true, false] {
            try withTemporaryStore(tables: Self.tables) { store in
                if isOld { store.environment.storesPieces.store(false, ordering: .relaxed) }
                try store.writeBlocking { transaction in
                    for id in 0..<UInt64(9) {
                        let value = [UInt8](repeating: 1, count: 3_000 * Int(id))
                        try transaction.put(Self.keyed, UserKey(tenant: "a", id: id), value)
                    }
                    try transaction.put(Self.keyed, UserKey(tenant: "a", id: 8), [UInt8](repeating: 2, count: 9_000))
                    try transaction.delete(Self.keyed, UserKey(tenant: "a", id: 7))
                }
                digests.append(try store.digest().tables)
                sums.append(try store.read { try $0.usage(ofTenant: "a") })
                #expect(try Self.pieceCount(store) > 0 || isOld)
                #expect(try store.read { try $0.countedUsage(ofTenant: "a") } == sums.last)
            }
        }
        #expect(digests[0] == digests[1])
        #expect(sums[0] == sums[1])
    }

    @Test func aLongValueIsOneChangeOfAllItsBytes() async throws {
        try await withTemporaryStore(tables: Self.tables) { store in
            let meter = WriteMeter()
            try await WriteMeter.$current.withValue(meter) {
                try await store.write { transaction in
                    try transaction.put(Self.keyed, UserKey(tenant: "a", id: 1), [UInt8](repeating: 1, count: 60_000))
                }
            }
            // The key has 10 bytes, the MAC 17, and LMDB keeps 16 beside each row.
            #expect(meter.changeCount == 1 && meter.byteCount == 60_043)
        }
    }

    @Test func aLongValueReachesOtherNodesWhole() async throws {
        let long = [UInt8](repeating: 9, count: 50_000)
        try await withJournaledNodes(2, { _ in }, fault: { _ in nil }) { cluster in
            // One node keeps it as an older server does.
            cluster.nodes[1].store.environment.storesPieces.store(false, ordering: .relaxed)
            try await cluster.nodes[0].store.write { try $0.put(JournaledNodes.values, [1], long) }
            try await cluster.nodes[1].store.write { try $0.put(JournaledNodes.values, [2], long) }
            try await cluster.catchUp()
            for node in cluster.nodes {
                #expect(try node.store.read { try $0.get(JournaledNodes.values, [1]) } == long)
                #expect(try node.store.read { try $0.get(JournaledNodes.values, [2]) } == long)
            }
            let counts = try cluster.nodes.map { try Self.pieceCount($0.store) }
            #expect(counts == [26, 0])
            let digests = try cluster.nodes.map { try $0.store.digest().tables }
            #expect(digests[0] == digests[1])
        }
    }
}
