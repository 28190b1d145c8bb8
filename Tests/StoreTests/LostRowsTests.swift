import Base
import Crypto
import TestSupport
import Testing

@testable import Store

/// A start on a data file in which rows are not altered, but cannot be found any more.
@Suite struct LostRowsTests {
    private func makeStore(at directory: String, recordCount: Int) throws {
        let store = try openTestStore(at: directory, tables: testTables)
        defer { store.close() }
        for round in UInt64(0)..<3 {
            try store.writeBlocking { transaction in
                for number in 0..<recordCount {
                    let record = TestRecord(round, "a record that is long enough to fill some pages")
                    try transaction.put(users, UserKey(tenant: "a", id: UInt64(number)), record)
                }
                try transaction.put(blobs, [1], [UInt8(round)])
                try transaction.appendEvent(tenant: "a", [UInt8(round)])
            }
        }
    }

    private func change(_ directory: String, _ body: @escaping @Sendable (borrowing WriteTransaction) throws -> Void)
        throws
    {
        let store = try openTestStore(at: directory, tables: testTables)
        defer { store.close() }
        try store.writeBlocking(body)
    }

    private func report(_ directory: String) throws -> StoreReport {
        try StoreReport(
            StoreConfiguration(directory: directory, tables: testTables), authenticator: TestAuthenticator(),
            eventHash: testEventHash, records: { _, _ in })
    }

    private func number(_ file: [UInt8], at offset: Int, byteCount: Int) -> Int {
        (0..<byteCount).reduce(0) { $0 | Int(file[offset + $1]) << (8 * $1) }
    }

    /// Where the newest list of tables, a single page, has the record of `table`.
    private func record(of table: String, in file: [UInt8]) throws -> Int {
        let meta = MetaPages.newest(file) * MetaPages.pageByteCount
        let page = number(file, at: meta + 88 + 40, byteCount: 8) * MetaPages.pageByteCount
        let nodeCount = (number(file, at: page + 12, byteCount: 2) - 16) / 2
        for index in 0..<nodeCount {
            let node = page + number(file, at: page + 16 + 2 * index, byteCount: 2)
            let end = node + 8 + number(file, at: node + 6, byteCount: 2)
            if file[node + 8..<end].elementsEqual(bytes(table)) { return end }
        }
        Issue.record("there is no table \(table)")
        throw StoreError.missing
    }

    /// An older version of the table has rows that carry their MACs, as has another table's tree.
    @Test(arguments: [20, 300]) func aTableWhoseTreeBeginsElsewhereIsRefused(recordCount: Int) throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/data.mdb"
            try makeStore(at: directory, recordCount: recordCount)
            let whole = contents(of: path)
            let place = try record(of: "users", in: whole) + 40
            let root = number(whole, at: place, byteCount: 8)
            let meta = MetaPages.newest(whole) * MetaPages.pageByteCount
            for page in 2...number(whole, at: meta + 136, byteCount: 8) where page != root {
                var damaged = whole
                for byte in 0..<8 { damaged[place + byte] = UInt8(truncatingIfNeeded: page >> (8 * byte)) }
                write(damaged, to: path)
                #expect(throws: StoreError.damaged(operation: "place of a table"), "page \(page) for \(root)") {
                    _ = try openTestStore(at: directory, tables: testTables)
                }
            }
            write(whole, to: path)
            try openTestStore(at: directory, tables: testTables).close()
        }
    }

    /// The head of a page says how many rows it has: with fewer, the last rows are hidden.
    @Test func hiddenRowsAreRefused() throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/data.mdb"
            try makeStore(at: directory, recordCount: 20)
            let whole = contents(of: path)
            let list = try record(of: "users", in: whole) / MetaPages.pageByteCount
            let rows = number(whole, at: try record(of: "users", in: whole) + 40, byteCount: 8)
            for (page, operation) in [(list, "list of tables"), (rows, "place of a table")] {
                var damaged = whole
                damaged[page * MetaPages.pageByteCount + 12] -= 2
                write(damaged, to: path)
                #expect(throws: StoreError.damaged(operation: operation)) {
                    _ = try openTestStore(at: directory, tables: testTables)
                }
                #expect(contents(of: path) == damaged)
            }
        }
    }

    /// A row with a damaged key is not found under the right one: a start would go on as in a new store.
    @Test(arguments: ["schema", "sequence", "upgraded", "witness"])
    func aDamagedKeyOfTheStoresOwnRowsIsRefused(name: String) throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/data.mdb"
            try makeStore(at: directory, recordCount: 1)
            let whole = contents(of: path)
            let key = bytes(name)
            let places = offsets(of: key, in: whole)
            #expect(!places.isEmpty)
            for byte in key.indices {
                var damaged = whole
                for place in places { damaged[place + byte] ^= 1 }
                write(damaged, to: path)
                #expect(throws: StoreError.damaged(operation: "meta")) {
                    _ = try openTestStore(at: directory, tables: testTables)
                }
                #expect(contents(of: path) == damaged)
            }
        }
    }

    /// The disk lost the newest page of the store's own rows and shows an older one, which has its MACs.
    @Test(arguments: ["witness", "time", "epoch"])
    func anOlderPageOfTheStoresOwnRowsIsRefused(name: String) throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/data.mdb"
            try makeStore(at: directory, recordCount: 1)
            try change(directory) { transaction in
                try transaction.setTimeMark(.zero)
                try transaction.beginEpoch(.system)
            }
            var damaged = contents(of: path)
            try change(directory) { try $0.delete(Schema.meta, bytes(name)) }
            let without = contents(of: path)
            let root = number(damaged, at: try record(of: "meta", in: damaged) + 40, byteCount: 8)
            let other = number(without, at: try record(of: "meta", in: without) + 40, byteCount: 8)
            // The first 8 bytes of a page are its own number.
            for byte in 8..<MetaPages.pageByteCount {
                damaged[root * MetaPages.pageByteCount + byte] = without[other * MetaPages.pageByteCount + byte]
            }
            write(damaged, to: path)
            #expect(throws: StoreError.damaged(operation: "meta")) {
                _ = try openTestStore(at: directory, tables: testTables)
            }
        }
    }

    @Test func aStoreThatLostItsVersionIsRefused() throws {
        try withTemporaryDirectory { directory in
            try makeStore(at: directory, recordCount: 1)
            try change(directory) { try $0.delete(Schema.meta, bytes("schema")) }
            for _ in 0..<2 {
                #expect(throws: StoreError.damaged(operation: "version of the store")) {
                    _ = try openTestStore(at: directory, tables: testTables)
                }
            }
            #expect(try !report(directory).isSound)
        }
    }

    /// The next event would take the place of the first one.
    @Test func aLogWithoutItsHeadTakesNoEvent() throws {
        try withTemporaryDirectory { directory in
            try makeStore(at: directory, recordCount: 1)
            try change(directory) { try $0.delete(Schema.eventHeads, TenantPrefix("a")) }
            do {
                let store = try openTestStore(at: directory, tables: testTables)
                defer { store.close() }
                #expect(throws: StoreError.corrupt(table: "event_heads")) {
                    try store.writeBlocking { try $0.appendEvent(tenant: "a", [9]) }
                }
                try store.writeBlocking { try $0.appendEvent(tenant: "b", [9]) }
            }
            let report = try self.report(directory)
            let line = "damaged: events: log without its head: 1"
            #expect(report.lines.contains { $0.hasPrefix(line) }, "\(report.lines)")
        }
    }

    @Test func aLogWithoutItsHeadDoesNotKeepOtherTenantsFromWriting() throws {
        try withTemporaryDirectory { directory in
            try makeStore(at: directory, recordCount: 1)
            try change(directory) { try $0.delete(Schema.eventHeads, TenantPrefix("a")) }
            let store = try openTestStore(at: directory, tables: testTables)
            defer { store.close() }
            let gate = WriterGate()
            let outcomes = WriteOutcomes()
            try gate.close(store)
            for (number, tenant) in (["b", "a", "c"] as [Text]).enumerated() {
                try store.write { transaction in
                    try transaction.appendEvent(tenant: tenant, [9])
                } completion: { result in
                    outcomes.record(number, result)
                }
            }
            gate.open()
            let errors = outcomes.wait(for: 3).sorted { $0.number < $1.number }.map(\.error)
            #expect(errors == [nil, StoreError.corrupt(table: "event_heads"), nil])
        }
    }
}
