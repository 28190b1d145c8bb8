import Base
import Crypto
import Glibc
import Identity
import Store
import TestSupport
import Testing

/// Commands for the data of a stopped server that must not keep it from starting again.
@Suite struct StoppedServerTests {
    /// Reading a backup may take minutes, and a server that has just ended must be able to start meanwhile.
    @Test func `A check of a backup locks the directory only after it has read the backup`() throws {
        try withTemporaryDirectory { directory in
            let data = "\(directory)/data"
            #expect(mkdir(data, 0o700) == 0)
            BackupTests.write(MasterKey.generate(random: .system), to: "\(data)/master-key")
            writeFile("\(directory)/backup", [UInt8]("hello".utf8))
            let ended = try BackupTests.posternd(data, ["--check-backup", "\(directory)/backup"])
            #expect(ended.status == 65 && ended.said.contains("is not a backup"), "\(ended.said)")
            #expect(access("\(data)/lock", F_OK) != 0)
        }
    }

    /// 65 is the status after which a supervisor does not start posternd again.
    @Test func `A store without its default pool ends every command with the status of damage`() async throws {
        try await withTemporaryDirectory { directory in
            let (data, masterKey) = ("\(directory)/data", MasterKey.generate(random: .system))
            try await withServer(directory: data, clock: ManualClock(), masterKey: masterKey) { server in
                _ = try await server.project.store.write { try $0.delete(Tables.tenants, TenantPrefix("")) }
                let backup = try await server.project.backups.begin(.schedule, origin: .server)
                var bytes: [UInt8] = []
                while let piece = try await backup.next() { bytes += piece }
                writeFile("\(directory)/backup", bytes)
            }
            BackupTests.write(masterKey, to: "\(data)/master-key")
            let listening = ["--listen-address", "127.0.0.1:\(try freePort())"]
            let journal = ["--journal", "postgresql://nobody@127.0.0.1:1/none"]
            for action in [listening, ["--recover-admin"], ["--cluster-init"] + journal] {
                let ended = try BackupTests.posternd(data, action)
                #expect(ended.status == 65, "\(action): \(ended.said)")
            }
            let backup = "\(directory)/backup"
            for action in [["--verify-store"], ["--check-backup", backup], ["--restore-backup", backup]] {
                let ended = try BackupTests.posternd(data, action)
                #expect(ended.status == 65 && ended.said.contains("no default pool"), "\(action): \(ended.said)")
            }
            unlink("\(data)/witness")
            let accepted = try BackupTests.posternd(data, ["--accept-rollback"])
            #expect(accepted.status == 65, "\(accepted.said)")
        }
    }

    @Test func `A restore that cannot put the witness in its place leaves the store of before in its own`() async throws
    {
        try await withTemporaryDirectory { directory in
            let (data, masterKey) = ("\(directory)/data", MasterKey.generate(random: .system))
            try await withServer(directory: data, clock: ManualClock(), masterKey: masterKey) { server in
                writeFile("\(directory)/backup", try BackupTests.take(server))
            }
            BackupTests.write(masterKey, to: "\(data)/master-key")
            let before = try #require(readFile("\(data)/data.mdb"))
            // A file cannot take the place of a directory.
            #expect(unlink("\(data)/witness") == 0 && mkdir("\(data)/witness", 0o700) == 0)
            let ended = try BackupTests.posternd(data, ["--restore-backup", "\(directory)/backup"])
            #expect(ended.status == 1 && ended.said.contains("witness"), "\(ended.said)")
            #expect(readFile("\(data)/data.mdb") == before)
        }
    }

    /// The server, which is not root, could not open what root has made.
    @Test func `As root, a command does not change the store of another user`() throws {
        try withTemporaryDirectory { directory in
            let data = "\(directory)/data"
            #expect(mkdir(data, 0o700) == 0)
            BackupTests.write(MasterKey.generate(random: .system), to: "\(data)/master-key")
            writeFile("\(directory)/backup", [UInt8]("hello".utf8))
            guard geteuid() == 0, chown("\(data)/master-key", 65_534, 65_534) == 0 else { return }
            let actions = [
                ["--recover-admin"], ["--accept-rollback"], ["--check-restore", "\(directory)/backup"],
                ["--restore-backup", "\(directory)/backup"], ["--cluster-leave"],
                ["--cluster-init", "--journal", "postgresql://nobody@127.0.0.1:1/none"],
                ["--cluster-rejoin", "--journal", "postgresql://nobody@127.0.0.1:1/none"],
            ]
            for action in actions {
                let ended = try BackupTests.posternd(data, action)
                #expect(ended.status == 1 && ended.said.contains("belongs to user 65534"), "\(action): \(ended.said)")
            }
            #expect(access("\(data)/data.mdb", F_OK) != 0 && access("\(data)/lock", F_OK) != 0)
        }
    }
}
