import Base
import Crypto
import Glibc
import Store
import TestSupport
import Testing

/// The files that commands for a stopped server may make, and who may make them: the server has to start afterwards.
@Suite struct StoppedDirectoryTests {
    /// A store of a server that has ended, with its master key, and a backup of it beside the directory.
    private static func withStore(
        _ body: @Sendable (_ data: String, _ backup: String, _ masterKey: MasterKey) throws -> Void
    ) async throws {
        try await withTemporaryDirectory { directory in
            let (data, backup) = ("\(directory)/data", "\(directory)/backup")
            let masterKey = MasterKey.generate(random: .system)
            try await withServer(directory: data, clock: ManualClock(), masterKey: masterKey) { server in
                writeFile(backup, try BackupTests.take(server))
            }
            BackupTests.write(masterKey, to: "\(data)/master-key")
            try body(data, backup, masterKey)
        }
    }

    private static func names(_ path: String) throws -> [String] { try DirectoryNames.list(path).sorted() }

    /// Root may verify a store that belongs to the server's user. A file of root's would keep the server from starting.
    @Test func `A command that only reads makes no file`() async throws {
        try await Self.withStore { data, backup, _ in
            for name in ["lock", "lock.mdb"] { unlink("\(data)/\(name)") }
            let before = try Self.names(data)
            for action in [["--verify-store"], ["--check-backup", backup], ["--check-restore", backup]] {
                let ended = try BackupTests.posternd(data, action)
                #expect(ended.status == 0, "\(action): \(ended.said)")
                #expect(try Self.names(data) == before, "\(action)")
            }
            // It only looks at a store that nobody else uses.
            let lock = try DirectoryLock(data, for: .changing)
            defer { lock.release() }
            let ended = try BackupTests.posternd(data, ["--verify-store"])
            #expect(ended.status == 1 && ended.said.contains("another posternd uses it"), "\(ended.said)")
        }
    }

    @Test func `Root may read another user's store, and changes and begins none there`() async throws {
        guard geteuid() == 0 else { return }
        try await Self.withStore { data, backup, masterKey in
            let other: uid_t = 65_534
            let empty = "\(data).empty"
            #expect(mkdir(empty, 0o700) == 0)
            // Root put it there.
            BackupTests.write(masterKey, to: "\(empty)/master-key")
            for path in try [data, empty] + Self.names(data).map({ "\(data)/\($0)" }) {
                #expect(chown(path, other, other) == 0)
            }
            let journal = ["--journal", "postgresql://nobody@127.0.0.1:1/none"]
            let serve = ["--listen-address", "127.0.0.1:\(try freePort())"]
            let changes: [[String]] = [
                serve, ["--restore-backup", backup], ["--check-restore", backup], ["--cluster-init"] + journal,
                ["--recover-admin"],
            ]
            for directory in [data, empty] {
                let before = try Self.names(directory)
                for action in changes {
                    let ended = try BackupTests.posternd(directory, action)
                    #expect(
                        ended.status == 1 && ended.said.contains("belongs to user 65534"), "\(action): \(ended.said)")
                }
                #expect(try Self.names(directory) == before)
            }
            for action in [["--verify-store"], ["--check-backup", backup]] {
                let ended = try BackupTests.posternd(data, action)
                #expect(ended.status == 0, "\(action): \(ended.said)")
            }
        }
    }

    /// A server that root runs over a directory that somebody else made goes on after an upgrade.
    @Test func `Root goes on with a store of its own in another user's directory`() async throws {
        guard geteuid() == 0 else { return }
        try await Self.withStore { data, _, _ in
            #expect(chown(data, 65_534, 65_534) == 0)
            let ended = try BackupTests.posternd(data, ["--recover-admin"])
            #expect(ended.status == 0, "\(ended.said)")
        }
    }

    // MARK: Backups

    /// 65 tells that a backup is damaged; whoever reads it would throw a sound one away.
    @Test func `A sound backup that cannot be checked is not called damaged`() async throws {
        try await Self.withStore { data, backup, _ in
            BackupTests.write(MasterKey.generate(random: .system), to: "\(data).key")
            let cases: [(file: String, flags: [String], said: String)] = [
                ("\(backup)s", [], "\(backup)s: open: No such file"),
                (backup, ["--master-key-file", "\(data).key"], "another master key"),
            ]
            for (file, flags, said) in cases {
                for action in ["--check-backup", "--check-restore", "--restore-backup"] {
                    let ended = try BackupTests.posternd(data, [action, file] + flags)
                    #expect(ended.status == 1 && ended.said.contains(said), "\(action): \(ended.said)")
                }
            }
        }
    }

    @Test func `A check removes the folders that stopped checks of the same backup left`() async throws {
        try await Self.withStore { data, backup, _ in
            let (left, used, others) = ("\(backup).check.aaaaaa", "\(backup).check.bbbbbb", "\(backup)2.check.cccccc")
            for folder in [left, used, others] {
                #expect(mkdir(folder, 0o700) == 0)
                writeFile("\(folder)/data.mdb", [1])
            }
            let lock = try DirectoryLock(used, for: .reading)
            defer { lock.release() }
            let ended = try BackupTests.posternd(data, ["--check-backup", backup])
            #expect(ended.status == 0, "\(ended.said)")
            #expect(access(left, F_OK) != 0)
            for folder in [used, others] { #expect(access("\(folder)/data.mdb", F_OK) == 0, "\(folder)") }
        }
    }
}
