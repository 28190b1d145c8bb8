import Base
import Crypto
import Glibc
import Identity
import Messages
import Service
import Store
import TestSupport
import Testing

/// Backups of a running server, and what comes back from them.
@Suite struct BackupTests {
    /// The bytes of a whole backup.
    static func take(_ server: TestServer) throws -> [UInt8] {
        let stream = try RawStream<ProjectBackupResponse>(
            server, "postern.v1.Project/Backup", ProjectBackupRequest(), initialWindow: 1 << 30)
        var bytes: [UInt8] = []
        while let message = try stream.next() {
            bytes += message.data
            if message.byteCount > 0 {
                #expect(message.byteCount == bytes.count)
                return bytes
            }
        }
        throw Failure(.internal, "the backup has no end")
    }

    /// Runs posternd over `directory`; its exit status and what it said.
    static func posternd(_ directory: String, _ words: [String]) throws -> (status: Int32?, said: String) {
        let process = try ChildProcess(
            ChildProcess.built("posternd"), ["--data-directory", directory, "--http-address", "off"] + words,
            output: directory + ".said")
        let status = process.wait(seconds: 60)
        return (status, String(decoding: readFile(directory + ".said") ?? [], as: UTF8.self))
    }

    static func write(_ key: MasterKey, to path: String) {
        writeFile(path, key.export().withBytes { Hex.encode($0).bytes })
        _ = chmod(path, 0o600)
    }

    /// Four writers make users in a row while backups are taken. The restored store has the first users of each row
    /// without a gap; the restore itself has followed every chain of events and compared every index.
    @Test func `A backup taken under load is the store at one moment`() async throws {
        try await withTemporaryDirectory { directory in
            let (clock, masterKey) = (ManualClock(), MasterKey.generate(random: .system))
            let taken = try await withServer(directory: directory + "/old", clock: clock, masterKey: masterKey) {
                server in try await Self.underLoad(server) { try Self.take(server) }
            }
            writeFile(directory + "/backup", taken.backup)
            let new = directory + "/new"
            #expect(mkdir(new, 0o700) == 0)
            Self.write(masterKey, to: new + "/master-key")
            let restored = try Self.posternd(new, ["--restore-backup", directory + "/backup"])
            #expect(restored.status == 0, "\(restored.said)")
            try await withServer(
                directory: new, clock: clock, masterKey: masterKey, adminKey: taken.adminKey
            ) { server in
                let client = try IdentityClient(server)
                let counts = (0..<4).map { writer in
                    var count = 0
                    while (try? client.get(Text("w\(writer)-\(count)"))) != nil { count += 1 }
                    // No user after the first missing one is there.
                    for later in count..<count + 50 { #expect((try? client.get(Text("w\(writer)-\(later)"))) == nil) }
                    return count
                }
                print("restored of each writer: \(counts), written: \(taken.counts)")
                #expect(zip(counts, taken.counts).allSatisfy { $0 <= $1 })
            }
        }
    }

    private static func underLoad(
        _ server: TestServer, _ body: @escaping @Sendable () throws -> [UInt8]
    ) async throws -> (backup: [UInt8], counts: [Int], adminKey: Secret) {
        let over = Counter()
        let (backup, counts) = try await withThrowingTaskGroup(of: (Int, [UInt8]).self) { group in
            for writer in 0..<4 {
                group.addTask {
                    let client = try server.connect()
                    var count = 0
                    while over.value == 0, count < 1_000 {
                        let _: UsersCreateResponse = try client.call(
                            "postern.v1.Users/Create", UsersCreateRequest(uid: Text("w\(writer)-\(count)")))
                        count += 1
                    }
                    return (writer, [UInt8](repeating: 0, count: count))
                }
            }
            var counts = [0, 0, 0, 0]
            try await until("there are commits") { try server.project.store.statistics().commits >= 100 }
            let backup = try body()
            over.add()
            for try await (writer, written) in group { counts[writer] = written.count }
            return (backup, counts)
        }
        return (backup, counts, server.adminKey)
    }

    @Test func `A restore undoes what came after, says what that was, and voids refresh tokens`() async throws {
        try await withTemporaryDirectory { directory in
            let (clock, masterKey) = (ManualClock(), MasterKey.generate(random: .system))
            let data = directory + "/data"
            let made = try await withServer(directory: data, clock: clock, masterKey: masterKey) { server in
                let client = try IdentityClient(server)
                _ = try client.signUp("ada@example.com")
                let tokens = try #require(try client.signIn("ada@example.com").tokens)
                writeFile(directory + "/backup", try Self.take(server))
                // The user's tokens are revoked, and two more users sign up.
                let uid = try client.lookup(tokens.idToken).uid
                let _: UsersRevokeTokensResponse = try client.client.call(
                    "postern.v1.Users/RevokeTokens", UsersRevokeTokensRequest(uid: uid))
                _ = try client.signUp("bea@example.com")
                _ = try client.signUp("cid@example.com")
                return (tokens, server.adminKey)
            }
            Self.write(masterKey, to: data + "/master-key")
            // If the name of the folder could be guessed, a link could lead into another folder.
            #expect(symlink(directory, directory + "/backup.check") == 0)
            let check = try Self.posternd(data, ["--check-backup", directory + "/backup"])
            #expect(check.status == 0 && check.said.contains("The backup is sound"), "\(check.said)")
            #expect(check.said.contains("userCreated: 2\n"), "\(check.said)")
            #expect(Files.names(directory).filter { $0.hasPrefix("backup.check.") }.isEmpty)
            unlink(directory + "/backup.check")
            let restored = try Self.posternd(data, ["--restore-backup", directory + "/backup"])
            #expect(restored.status == 0 && restored.said.contains("data.mdb.before-restore-"), "\(restored.said)")
            #expect(Files.isMissing(data + "/restore.new"))
            #expect(try Self.posternd(data, ["--verify-store"]).status == 0)
            try await withServer(directory: data, clock: clock, masterKey: masterKey, adminKey: made.1) { server in
                let client = try IdentityClient(server)
                // Without the epoch this session, which was revoked, would go on.
                expectRefusal("INVALID_REFRESH_TOKEN") { _ = try client.refresh(made.0.refreshToken) }
                expectRefusal("INVALID_LOGIN_CREDENTIALS") { _ = try client.signIn("bea@example.com") }
                let again = try #require(try client.signIn("ada@example.com").tokens)
                #expect(try client.refresh(again.refreshToken).uid == client.lookup(again.idToken).uid)
            }
        }
    }

    /// The store is from Tests/Fixtures: carl, bob and ann in acme, dora in the default pool.
    @Test func `A backup of a store of version 3 is restored and upgraded`() async throws {
        try await withTemporaryDirectory { directory in
            let fixture =
                "/" + #filePath.split(separator: "/").dropLast(2).joined(separator: "/")
                + "/Fixtures/store-of-version-3"
            let command = """
                gunzip -c \(fixture)/postern.backup.gz > \(directory)/backup && mkdir -m 700 \(directory)/data \
                && cp \(fixture)/master-key \(directory)/data/ && chmod 600 \(directory)/data/master-key
                """
            try #require(try ChildProcess("/bin/sh", ["-c", command]).wait() == 0)
            let data = directory + "/data"
            let check = try Self.posternd(data, ["--check-backup", directory + "/backup"])
            #expect(check.status == 0 && check.said.contains("The backup is sound"), "\(check.said)")
            let restored = try Self.posternd(data, ["--restore-backup", directory + "/backup"])
            #expect(restored.status == 0 && restored.said.contains("Restored."), "\(restored.said)")
            #expect(try Self.posternd(data, ["--verify-store"]).status == 0)
            let digits = try #require(readFile(data + "/master-key")).prefix(64)
            let masterKey = try MasterKey(Secret(try #require(Hex.decode(Array(digits)))))
            // The test makes no calls, so it needs no admin key.
            try await withServer(
                directory: data, clock: ManualClock(), masterKey: masterKey, adminKey: Secret("unused")
            ) { server in
                let found = try ["acme", ""].map { tenantID in
                    try server.project.store.read { try $0.usage(ofTenant: tenantID).countedRowCount }
                }
                #expect(found == [3, 1])
            }
        }
    }

    @Test func `A backup that is not whole, not ours or not one changes nothing`() async throws {
        try await withTemporaryDirectory { directory in
            let (clock, masterKey) = (ManualClock(), MasterKey.generate(random: .system))
            let data = directory + "/data"
            let backup = try await withServer(directory: data, clock: clock, masterKey: masterKey) { server in
                try Self.take(server)
            }
            Self.write(masterKey, to: data + "/master-key")
            let before = readFile(data + "/data.mdb")
            var altered = backup
            altered[altered.count / 2] ^= 1
            let cases: [(bytes: [UInt8], said: String)] = [
                (Array(backup.dropLast(1_000)), "is not whole"), (altered, "is damaged"),
                ([UInt8]("hello".utf8), "is not a backup"), ([], "is not a backup"),
            ]
            for (bytes, said) in cases {
                writeFile(directory + "/backup", bytes)
                for action in ["--check-backup", "--restore-backup"] {
                    let ended = try Self.posternd(data, [action, directory + "/backup"])
                    #expect(ended.status == 65 && ended.said.contains(said), "\(action): \(ended.said)")
                    #expect(Files.names(directory).filter { $0.hasPrefix("backup.check.") }.isEmpty)
                }
            }
            Self.write(MasterKey.generate(random: .system), to: directory + "/other-key")
            writeFile(directory + "/backup", backup)
            let other = try Self.posternd(
                data, ["--restore-backup", directory + "/backup", "--master-key-file", directory + "/other-key"])
            #expect(other.status == 1 && other.said.contains("another master key"), "\(other.said)")
            #expect(readFile(data + "/data.mdb") == before)
        }
    }

    @Test func `One backup at a time, and one that nobody reads is given up`() async throws {
        try await withServer(configure: { $0.limits.backupStallMax = .seconds(1) }) { server in
            let client = try server.connect()
            for user in 0..<200 {
                let _: UsersCreateResponse = try client.call(
                    "postern.v1.Users/Create", UsersCreateRequest(uid: Text("u\(user)"), displayName: "a user"))
            }
            // The first message does not fit in the window, so the server waits for room.
            let stalled = try RawStream<ProjectBackupResponse>(
                server, "postern.v1.Project/Backup", ProjectBackupRequest(), initialWindow: 1)
            try await until("the backup runs") { server.project.backups.isRunning }
            let second = try RawStream<ProjectBackupResponse>(
                server, "postern.v1.Project/Backup", ProjectBackupRequest())
            expectRefusal("BACKUP_IN_PROGRESS") { while try second.next() != nil {} }
            try await until("the backup is given up") { !server.project.backups.isRunning }
            #expect(try Self.take(server).count > 10_000)
            #expect(server.project.backups.failures.value == 1)
            try stalled.grant(1 << 30)
            expectRefusal("DEADLINE_EXCEEDED") { while try stalled.next() != nil {} }
        }
    }

    @Test func `A backup that is read too slowly is given up, however steadily`() async throws {
        try await withServer(configure: {
            $0.limits.backupSlowMax = .milliseconds(1)
            $0.limits.backupBytesPerSecondMin = 1 << 40
        }) { server in
            let slow = try RawStream<ProjectBackupResponse>(
                server, "postern.v1.Project/Backup", ProjectBackupRequest(), initialWindow: 1)
            // It may be given up before the first look.
            let backups = server.project.backups
            try await until("a backup was given up") { backups.failures.value == 1 && !backups.isRunning }
            try slow.grant(1 << 30)
            expectRefusal("DEADLINE_EXCEEDED") { while try slow.next() != nil {} }
            #expect(server.project.backups.failures.value == 1)
        }
    }

    @Test func `A directory for backups that is not there is told at the start`() throws {
        try withTemporaryDirectory { directory in
            let ended = try Self.posternd(directory + "/data", ["--backup-directory", directory + "/nowhere"])
            #expect(ended.status == 1 && ended.said.contains("backup_directory"), "\(ended.said)")
        }
    }
}

private enum Files {
    static func isMissing(_ path: String) -> Bool { access(path, F_OK) != 0 }

    static func names(_ path: String) -> [String] {
        guard let directory = opendir(path) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if !name.hasPrefix(".") { names.append(name) }
        }
        return names
    }
}
