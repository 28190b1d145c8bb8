import Base
import Glibc
import TestSupport
import Testing

@testable import Store

@Suite struct StoreReportTests {
    private func makeStore(_ directory: String) throws {
        let store = try openTestStore(at: directory, tables: testTables)
        defer { store.close() }
        var random = SeededGenerator(seed: 7)
        for round in 0..<6 {
            let values = (0..<60).map { _ in random.bytes(random.below(10) == 0 ? 9_000 : 90) }
            try store.writeBlocking { transaction in
                for (index, value) in values.enumerated() {
                    try transaction.put(blobs, [UInt8(round), UInt8(index)], value)
                    try transaction.put(users, UserKey(tenant: "a", id: UInt64(index)), TestRecord(UInt64(round)))
                }
                if round > 2 {
                    for index in 0..<30 { try transaction.delete(blobs, [UInt8(round - 1), UInt8(index)]) }
                }
                try transaction.appendEvent(tenant: "a", [UInt8(round)])
            }
        }
    }

    fileprivate func report(_ directory: String) throws -> StoreReport {
        try StoreReport(
            StoreConfiguration(directory: directory, tables: testTables), authenticator: TestAuthenticator(),
            eventHash: testEventHash, records: { _, _ in })
    }

    private static let tables = [blobs.id, users.id, Schema.events.id].map {
        Table<[UInt8], [UInt8]>(id: $0, name: "", owner: .nobody, purge: .noTenant)
    }

    /// Everything that the store answers: row by row, then each row by its key, then after every row was written again.
    fileprivate func everything(_ directory: String) throws -> [[UInt8]] {
        let store = try openTestStore(at: directory, tables: testTables)
        defer { store.close() }
        let rows = try scanned(store)
        // Counted, because `#expect` would take longer than the store.
        let differing = try store.writeBlocking { transaction -> Int in
            var differing = 0
            for (table, key, value) in rows {
                if try transaction.get(table, key) != value { differing += 1 }
                try transaction.put(table, key, value + [1])
                try transaction.put(table, key, value)
            }
            return differing
        }
        #expect(differing == 0)
        // An empty table is filled beyond a page and emptied again.
        let keys = (UInt8(0)..<100).map { [$0] + [UInt8](repeating: 0, count: 200) }
        try store.writeBlocking { for key in keys { try $0.put(ending, key, EndingRecord()) } }
        try store.writeBlocking { for key in keys { try $0.delete(ending, key) } }
        return (rows + (try scanned(store))).map { $0.key + [0] + $0.value }
    }

    private func scanned(
        _ store: Store
    ) throws -> [(table: Table<[UInt8], [UInt8]>, key: [UInt8], value: [UInt8])] {
        try store.read { transaction in
            var rows: [(table: Table<[UInt8], [UInt8]>, key: [UInt8], value: [UInt8])] = []
            for table in Self.tables {
                try transaction.scan(table) { row in
                    rows.append((table, try row.key, [UInt8](row.value)))
                    return true
                }
            }
            return rows
        }
    }

    @Test func aSoundStoreIsSoundAndUnchanged() throws {
        try withTemporaryDirectory { directory in
            try makeStore(directory)
            let before = contents(of: directory + "/data.mdb")
            let report = try report(directory)
            #expect(report.isSound, "\(report.lines)")
            #expect(contents(of: directory + "/data.mdb") == before)
            #expect(report.lines.contains { $0.hasPrefix("blobs: ") })
            #expect(report.lines.contains { $0.hasSuffix("neither used nor free: 0") }, "\(report.lines)")
        }
    }

    /// Damages every page but the meta pages in five ways, and single bytes anywhere. A store that is called sound
    /// answers as before, and nothing ends the process.
    @Test func noDamageIsCalledSoundThatChangesAnAnswer() async throws {
        try await inHalves { half in try withTemporaryDirectory { try damagePages(in: $0, half: half) } }
    }

    private func damagePages(in directory: String, half: Int) throws {
        try makeStore(directory)
        let trial = try DamageTrial(self, directory)
        var random = SeededRandom.printed()
        let pageCount = trial.kept.count / 4_096
        for page in 2..<pageCount where page % 2 == half {
            let range = page * 4_096..<(page + 1) * 4_096
            let other = Int.random(in: 2..<pageCount, using: &random) * 4_096
            for kind in 0..<5 {
                try trial.check("page \(page), kind \(kind)") { damaged in
                    switch kind {
                    case 0: damaged.replaceSubrange(range, with: [UInt8](repeating: 0, count: 4_096))
                    case 1: damaged.replaceSubrange(range, with: [UInt8](repeating: 0xFF, count: 4_096))
                    case 2: damaged.replaceSubrange(range, with: trial.kept[other..<other + 4_096])
                    case 3:
                        for _ in 0..<16 { damaged[range.lowerBound + random.below(24)] ^= 0x11 }
                    default: damaged.replaceSubrange(range.suffix(2_048), with: trial.kept[0..<2_048])
                    }
                }
            }
        }
        for _ in 0..<200 {
            let index = Int.random(in: 0..<trial.kept.count, using: &random)
            let bit = UInt8(1) << UInt8.random(in: 0..<8, using: &random)
            try trial.check("byte \(index), bit \(bit)") { $0[index] ^= bit }
        }
        trial.finish()
    }

    /// Flips every bit that LMDB trusts without a MAC: in meta pages, headers of pages and rows, the tables' names and
    /// records, and lists of free pages. Of similar rows in one page, only the first and the last are tried; of empty
    /// tables, only one.
    @Test func noBitOfTheLayoutIsCalledSoundThatChangesAnAnswer() async throws {
        try await inHalves { half in try withTemporaryDirectory { try flipLayout(in: $0, half: half) } }
    }

    /// Both halves' stores have the same layout, because the same is written to them in the same order.
    private func flipLayout(in directory: String, half: Int) throws {
        let store = try openTestStore(at: directory, tables: testTables)
        for round in UInt8(0)..<2 {
            try store.writeBlocking { transaction in
                for index in UInt8(0)..<40 {
                    try transaction.put(blobs, [index], [UInt8](repeating: round, count: index == 7 ? 5_000 : 100))
                }
            }
        }
        store.close()
        let trial = try DamageTrial(self, directory)
        let layout = trial.layout()
        for (tree, part) in [
            ("free pages: leaf", "list"), ("tables: leaf", "name"), ("table: branch", "row"),
            ("table: leaf", "value's page"),
        ] {
            #expect(layout.contains { $0.name == "\(tree), \(part)" })
        }
        for part in layout {
            for byte in part.range where byte % 2 == half {
                for bit in 0..<8 {
                    try trial.check("\(part.name), byte \(byte - part.range.lowerBound), bit \(bit)") {
                        $0[byte] ^= UInt8(1) << bit
                    }
                }
            }
        }
        trial.finish()
    }

    /// A value that is written twice in one transaction keeps the pages of the longer one.
    @Test func aValueWithMorePagesThanItNeedsIsSound() throws {
        try withTemporaryDirectory { directory in
            let store = try openTestStore(at: directory, tables: testTables)
            for count in [9_000, 3_000, 10] {
                try store.writeBlocking { transaction in
                    try transaction.put(blobs, [UInt8(count & 0xFF)], [UInt8](repeating: 1, count: 30_000))
                    try transaction.put(blobs, [UInt8(count & 0xFF)], [UInt8](repeating: 2, count: count))
                }
            }
            store.close()
            let report = try report(directory)
            #expect(report.isSound, "\(report.lines)")
        }
    }

    /// LMDB never writes a smaller number than that of the second meta page.
    @Test func aLastPageBeforeTheFirstIsRefused() throws {
        try withTemporaryDirectory { directory in
            try makeStore(directory)
            var damaged = contents(of: directory + "/data.mdb")
            for offset in [136, 4_096 + 136] {
                damaged.replaceSubrange(offset..<offset + 8, with: repeatElement(0, count: 8))
            }
            write(damaged, to: directory + "/data.mdb")
            #expect(throws: StoreError.damaged(operation: "meta page")) { _ = try report(directory) }
            #expect(throws: StoreError.damaged(operation: "meta page")) {
                _ = try openTestStore(at: directory, tables: testTables)
            }
        }
    }

    @Test func missingRecordsAreFound() throws {
        try withTemporaryDirectory { directory in
            try makeStore(directory)
            let store = try openTestStore(at: directory, tables: testTables)
            try store.writeBlocking { _ = try $0.delete(Schema.events, EventKey(tenant: "a", sequence: 3)) }
            store.close()
            let report = try report(directory)
            #expect(!report.isSound)
            #expect(report.lines.contains { $0.hasPrefix("damaged: events: broken chain") }, "\(report.lines)")
        }
    }
}

/// A store that is damaged again and again, each time from the same state.
private final class DamageTrial {
    private let tests: StoreReportTests
    private let directory: String
    private let witness: [UInt8]
    private let answers: [[UInt8]]
    /// The file up to its last page. The file is longer than its contents: the bytes behind belong to nobody.
    let kept: [UInt8]
    private var caseCount = 0
    private var soundCount = 0

    init(_ tests: StoreReportTests, _ directory: String) throws {
        (self.tests, self.directory) = (tests, directory)
        guard let file = try DataFile(path: directory + "/data.mdb") else { throw StoreError.missing }
        let pageCount = Int(try file.newestMeta().lastPage + 1)
        self.kept = Array(contents(of: directory + "/data.mdb").prefix(pageCount * 4_096))
        self.witness = contents(of: directory + "/witness")
        let report = try tests.report(directory)
        #expect(report.isSound, "\(report.lines)")
        self.answers = try tests.everything(directory)
    }

    /// A store that is called sound answers as before.
    func check(_ name: String, _ damage: (inout [UInt8]) -> Void) throws {
        caseCount += 1
        var damaged = kept
        damage(&damaged)
        write(damaged, to: directory + "/data.mdb")
        write(witness, to: directory + "/witness")
        guard (try? tests.report(directory).isSound) == true else { return }
        soundCount += 1
        #expect(try tests.everything(directory) == answers, "\(name)")
    }

    func finish() {
        print("\(caseCount) damaged files, \(soundCount) of them called sound")
        #expect(soundCount < caseCount)
    }

    struct Part {
        var name: String
        var range: Range<Int>
    }

    /// The places of the bytes without a MAC, by mdb.c of 0.9: the meta pages, and from the newest of them down.
    func layout() -> [Part] {
        let meta = MetaPages.newest(kept) * MetaPages.pageByteCount
        var parts = [0, 4_096].map { Part(name: "meta page at \($0)", range: $0..<$0 + 152) }
        addTree("free pages", recordAt: meta + 40, to: &parts)
        addTree("tables", recordAt: meta + 88, to: &parts)
        return parts
    }

    private func number(_ offset: Int, _ byteCount: Int) -> Int {
        (0..<byteCount).reduce(0) { $0 | Int(kept[offset + $1]) << (8 * $1) }
    }

    private func addTree(_ name: String, recordAt record: Int, to parts: inout [Part]) {
        parts.append(Part(name: "\(name): record", range: record..<record + 48))
        if number(record + 6, 2) > 0 { addPage(name, number(record + 40, 8) * 4_096, to: &parts) }
    }

    private func addPage(_ tree: String, _ page: Int, to parts: inout [Part]) {
        let isLeaf = number(page + 10, 2) == 2
        let name = "\(tree): \(isLeaf ? "leaf" : "branch")"
        parts.append(Part(name: name, range: page..<page + 16))
        let nodeCount = (number(page + 12, 2) - 16) / 2
        for index in 0..<nodeCount {
            let offset = page + 16 + 2 * index
            let node = page + number(offset, 2)
            let keyEnd = node + 8 + number(node + 6, 2)
            let kind = isLeaf ? number(node + 4, 2) : -1
            if index == 0 || index == nodeCount - 1 || kind == 1 {
                parts.append(Part(name: "\(name), offset", range: offset..<offset + 2))
                parts.append(Part(name: "\(name), row", range: node..<(isLeaf ? node + 8 : keyEnd)))
                if kind == 1 {
                    let place = number(keyEnd, 8) * 4_096
                    parts.append(Part(name: "\(name), place of a value", range: keyEnd..<keyEnd + 8))
                    parts.append(Part(name: "\(name), value's page", range: place..<place + 16))
                } else if tree == "free pages", isLeaf {
                    parts.append(Part(name: "\(name), list", range: node + 8..<keyEnd + number(node, 4)))
                }
            }
            // Of the tables without rows, one is enough.
            if kind == 2, index == 0 || number(keyEnd + 6, 2) > 0 {
                parts.append(Part(name: "\(name), name", range: node + 8..<keyEnd))
                addTree("table", recordAt: keyEnd, to: &parts)
            }
            if !isLeaf { addPage(tree, (number(node, 4) | number(node + 4, 2) << 32) * 4_096, to: &parts) }
        }
    }
}
