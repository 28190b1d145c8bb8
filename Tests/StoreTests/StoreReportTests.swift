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

    private static func usedByteCount(_ path: String) throws -> Int {
        guard let file = try DataFile(path: path) else { throw StoreError.missing }
        return Int(try file.newestMeta().lastPage + 1) * 4_096
    }

    private func report(_ directory: String) throws -> StoreReport {
        try StoreReport(
            StoreConfiguration(directory: directory, tables: testTables), authenticator: TestAuthenticator(),
            eventHash: testEventHash, records: { _, _ in })
    }

    /// Everything that the store answers, in one text.
    private func everything(_ directory: String) throws -> [[UInt8]] {
        let store = try openTestStore(at: directory, tables: testTables)
        defer { store.close() }
        return try store.read { transaction in
            var rows: [[UInt8]] = []
            for table in [blobs.id, users.id, Schema.events.id] {
                let table = Table<[UInt8], [UInt8]>(id: table, name: "", owner: .nobody, purge: .noTenant)
                try transaction.scan(table) { row in
                    rows.append(try row.key + [0] + [UInt8](row.value))
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

    /// Every page but the meta pages, damaged in five ways, and single bytes anywhere: what is called sound answers as
    /// before. Nothing ends the process.
    @Test func noDamageIsCalledSoundThatChangesAnAnswer() throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/data.mdb"
            try makeStore(directory)
            let whole = contents(of: path)
            let answers = try everything(directory)
            // The file is grown ahead of what it holds: what lies behind the last page is nobody's.
            let usedByteCount = try Self.usedByteCount(path)
            let kept = Array(whole[..<min(whole.count, usedByteCount)])
            let witness = contents(of: directory + "/witness")
            var random = SeededRandom.printed()
            let pageCount = kept.count / 4_096
            var (caseCount, soundCount) = (0, 0)
            func check(_ damaged: [UInt8], _ name: String) throws {
                caseCount += 1
                write(damaged, to: path)
                write(witness, to: directory + "/witness")
                guard (try? report(directory).isSound) == true else { return }
                soundCount += 1
                #expect(try everything(directory) == answers, "\(name)")
            }
            for page in 2..<pageCount {
                let range = page * 4_096..<(page + 1) * 4_096
                let other = Int.random(in: 2..<pageCount, using: &random) * 4_096
                for kind in 0..<5 {
                    var damaged = kept
                    switch kind {
                    case 0: damaged.replaceSubrange(range, with: [UInt8](repeating: 0, count: 4_096))
                    case 1: damaged.replaceSubrange(range, with: [UInt8](repeating: 0xFF, count: 4_096))
                    case 2: damaged.replaceSubrange(range, with: kept[other..<other + 4_096])
                    case 3: for _ in 0..<16 { damaged[page * 4_096 + Int.random(in: 0..<24, using: &random)] ^= 0x11 }
                    default: damaged.replaceSubrange(page * 4_096 + 2_048..<range.upperBound, with: damaged[0..<2_048])
                    }
                    try check(damaged, "page \(page), kind \(kind)")
                }
            }
            for _ in 0..<400 {
                var damaged = kept
                let index = Int.random(in: 0..<kept.count, using: &random)
                damaged[index] ^= UInt8(1) << UInt8.random(in: 0..<8, using: &random)
                try check(damaged, "byte \(index)")
            }
            print("\(caseCount) damaged files, \(soundCount) of them in free space")
            #expect(soundCount < caseCount)
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
