import Base
import Crypto
import Glibc
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
