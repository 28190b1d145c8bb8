import Base
import Crypto
import Glibc
import Messages
import TestSupport
import Testing

@testable import Store

/// The form of a backup: a whole backup can be opened, and one that was cut or altered anywhere cannot.
@Suite struct BackupFileTests {
    private static let rows = Table<[UInt8], [UInt8]>(id: 40, name: "rows", owner: .nobody, purge: .noTenant)
    private static let masterKeyID = [UInt8](1...8)
    private static let key = HMACKey(Secret([UInt8](repeating: 7, count: 32)))

    private static func open(_ path: String) throws(BackupError) -> BackupFile {
        try BackupFile(path, masterKeyID: masterKeyID, key: key)
    }

    private static func backup(of store: Store) throws -> [UInt8] {
        let stream = try store.backup(BackupHeader(projectID: "p", masterKeyID: masterKeyID), key: key)
        var bytes: [UInt8] = []
        while let piece = try stream.next() {
            #expect(!piece.isEmpty && piece.count <= BackupStream.pieceByteCount + 72)
            bytes += piece
        }
        return bytes
    }

    private static func put(_ rows: Range<Int>, into store: Store) throws {
        try store.writeBlocking { transaction in
            for row in rows {
                try transaction.put(Self.rows, [UInt8]("\(row)".utf8), [UInt8](repeating: UInt8(row % 256), count: 900))
            }
        }
    }

    @Test(arguments: [0, 1, 100, 3_000])
    func `A backup opens as the store that it was taken of`(rowCount: Int) throws {
        try withTemporaryDirectory { directory in
            let store = try openTestStore(at: directory + "/store", tables: [Self.rows.declaration])
            try Self.put(0..<rowCount, into: store)
            let path = directory + "/backup"
            writeFile(path, try Self.backup(of: store))
            // These rows come after the backup.
            try Self.put(rowCount..<rowCount + 10, into: store)
            store.close()
            let file = try Self.open(path)
            #expect(file.header.projectID == "p" && file.header.schemaVersion == Schema.version)
            #expect(mkdir(directory + "/copy", 0o700) == 0)
            try file.unpack(to: directory + "/copy/data.mdb")
            let copy = try openTestStore(at: directory + "/copy", tables: [Self.rows.declaration]) {
                $0.acceptsRollback = true
            }
            defer { copy.close() }
            var found = 0
            try copy.read { transaction in
                try transaction.scan(Self.rows) { row in
                    found += 1
                    return true
                }
            }
            #expect(found == rowCount)
        }
    }

    @Test func `A backup has long values whole`() throws {
        try withTemporaryDirectory { directory in
            let store = try openTestStore(at: directory + "/store", tables: [Self.rows.declaration])
            let values = (1...4).map { [UInt8](repeating: UInt8($0), count: 12_000 * $0) }
            try store.writeBlocking { transaction in
                for (index, value) in values.enumerated() { try transaction.put(Self.rows, [UInt8(index)], value) }
            }
            let path = directory + "/backup"
            writeFile(path, try Self.backup(of: store))
            try store.writeBlocking { try $0.put(Self.rows, [0], [UInt8](repeating: 9, count: 50_000)) }
            store.close()
            #expect(mkdir(directory + "/copy", 0o700) == 0)
            try Self.open(path).unpack(to: directory + "/copy/data.mdb")
            let report = try StoreReport(
                StoreConfiguration(directory: directory + "/copy", tables: [Self.rows.declaration]),
                authenticator: TestAuthenticator(), eventHash: testEventHash, isBackup: true, records: { _, _ in })
            #expect(report.isSound, "\(report.lines)")
            let copy = try openTestStore(at: directory + "/copy", tables: [Self.rows.declaration]) {
                $0.acceptsRollback = true
            }
            defer { copy.close() }
            for (index, value) in values.enumerated() {
                let found = try copy.read { try $0.get(Self.rows, [UInt8(index)]) }
                #expect(found == value)
            }
            #expect(try copy.read { try $0.count(Schema.pieces) } > 20)
        }
    }

    @Test(.timeLimit(.minutes(2))) func `A backup that is dropped half-way keeps nothing`() throws {
        try withTemporaryDirectory { directory in
            let store = try openTestStore(at: directory + "/store", tables: [Self.rows.declaration])
            try Self.put(0..<3_000, into: store)
            for _ in 0..<5 {
                let stream = try store.backup(BackupHeader(masterKeyID: Self.masterKeyID), key: Self.key)
                _ = try stream.next()
                _ = try stream.next()
            }
            // `close` waits for the users of the environment: it returns only when every copy was given up.
            store.close()
        }
    }

    @Test func `A file that was cut anywhere is refused`() throws {
        try withTemporaryDirectory { directory in
            let whole = try withTemporaryStore(tables: [Self.rows.declaration]) { try Self.backup(of: $0) }
            let path = directory + "/backup"
            var cuts = Array(0...200) + Array(stride(from: 201, to: whole.count, by: 4_001))
            cuts += Array(whole.count - 100..<whole.count)
            for count in cuts {
                writeFile(path, Array(whole[..<count]))
                let error = #expect(throws: BackupError.self) { _ = try Self.open(path) }
                #expect(error == (count < 16 ? .notABackup : .cut), "\(count)")
            }
            writeFile(path, whole + [0])
            #expect(throws: BackupError.cut) { _ = try Self.open(path) }
            writeFile(path, whole)
            _ = try Self.open(path)
        }
    }

    @Test func `A file with one other byte is refused`() throws {
        try withTemporaryDirectory { directory in
            let whole = try withTemporaryStore(tables: [Self.rows.declaration]) { try Self.backup(of: $0) }
            let path = directory + "/backup"
            var random = SeededRandom.printed()
            let trailer = whole.count - 72
            let places =
                Array(0..<80) + (0..<100).map { _ in Int.random(in: 80..<trailer, using: &random) }
                + Array(trailer..<whole.count)
            for place in places {
                var altered = whole
                altered[place] ^= UInt8.random(in: 1...255, using: &random)
                writeFile(path, altered)
                #expect(throws: BackupError.self, "byte \(place)") { _ = try Self.open(path) }
            }
        }
    }

    /// An attacker without the master key can compute the digest again, but not the tag.
    @Test func `A digest that was made anew does not help`() throws {
        try withTemporaryDirectory { directory in
            var forged = try withTemporaryStore(tables: [Self.rows.declaration]) { try Self.backup(of: $0) }
            let trailer = forged.count - 72
            forged[trailer - 1] ^= 1
            let digest = Digest.sha256(Array(forged[..<trailer]))
            forged.replaceSubrange(trailer + 8..<trailer + 40, with: digest)
            let path = directory + "/backup"
            writeFile(path, forged)
            #expect(throws: BackupError.altered) { _ = try Self.open(path) }
        }
    }

    /// A file in a directory where others write can change between the check and the restore. Each page of an older
    /// backup of the same store is sound by itself.
    @Test func `A file that changes after it was opened is not unpacked`() throws {
        try withTemporaryDirectory { directory in
            let whole = try withTemporaryStore(tables: [Self.rows.declaration]) { store in
                try Self.put(0..<100, into: store)
                return try Self.backup(of: store)
            }
            let path = directory + "/backup"
            let dataStart = 16 + Int(whole[8..<16].reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
            for place in [16, dataStart, whole.count - 73] {
                writeFile(path, whole)
                let file = try Self.open(path)
                let output = Glibc.open(path, O_WRONLY)
                let byte = [whole[place] ^ 1]
                #expect(pwrite(output, byte, 1, off_t(place)) == 1)
                Glibc.close(output)
                #expect(throws: BackupError.altered, "byte \(place)") {
                    try file.unpack(to: directory + "/copy-\(place)")
                }
            }
        }
    }

    @Test func `Another master key, a newer form and a bad place are told apart from damage`() throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/backup"
            writeFile(path, try withTemporaryStore(tables: [Self.rows.declaration]) { try Self.backup(of: $0) })
            let file = try Self.open(path)
            #expect(throws: BackupError.unpacking(call: "create", code: 2)) {
                try file.unpack(to: directory + "/none/data.mdb")
            }
            #expect(throws: BackupError.otherMasterKey) {
                _ = try BackupFile(path, masterKeyID: [9, 9, 9, 9, 9, 9, 9, 9], key: Self.key)
            }
            let newer = BackupFormat.prefix(header: BackupHeader(formatVersion: BackupFormat.version + 1).encoded())
            writeFile(path, newer)
            #expect(throws: BackupError.newerFormat(BackupFormat.version + 1)) { _ = try Self.open(path) }
            writeFile(path, BackupFormat.prefix(header: [UInt8](repeating: 0xFF, count: 10)))
            #expect(throws: BackupError.altered) { _ = try Self.open(path) }
            writeFile(path, BackupFormat.magic + [UInt8](repeating: 0xFF, count: 200))
            #expect(throws: BackupError.altered) { _ = try Self.open(path) }
            #expect(throws: BackupError.notABackup) { _ = try Self.open(directory) }
            #expect(throws: BackupError.file(call: "open", code: 2)) { _ = try Self.open(directory + "/none") }
        }
    }
}
