import Base
import Crypto
import Glibc
import Messages
import TestSupport
import Testing

/// `Project.ServerInfo` names the history of the store's writes: programs that noted how far they came see by it that
/// their writes may be gone.
@Suite struct StoreHistoryTests {
    private static func historyID(of server: TestServer) throws -> Text {
        let info: ProjectServerInfoResponse = try server.connect().call(
            "postern.v1.Project/ServerInfo", ProjectServerInfoRequest())
        return info.historyID
    }

    @Test func `A restart goes on with the history; a restore and an accepted rollback begin another`() async throws {
        try await withTemporaryDirectory { directory in
            let (clock, masterKey) = (ManualClock(), MasterKey.generate(random: .system))
            let (data, backup) = ("\(directory)/data", "\(directory)/backup")
            let (first, key): (Text, Secret) = try await withServer(
                directory: data, clock: clock, masterKey: masterKey
            ) { server in
                writeFile(backup, try BackupTests.take(server))
                return (try Self.historyID(of: server), server.adminKey)
            }
            #expect(first.byteCount == 32)
            func again() async throws -> Text {
                try await withServer(directory: data, clock: clock, masterKey: masterKey, adminKey: key) { server in
                    try Self.historyID(of: server)
                }
            }
            let restarted = try await again()
            #expect(restarted == first)
            BackupTests.write(masterKey, to: "\(data)/master-key")
            let restored = try BackupTests.posternd(data, ["--restore-backup", backup])
            #expect(restored.status == 0, "\(restored.said)")
            let second = try await again()
            #expect(second != first && second.byteCount == 32)
            #expect(unlink("\(data)/witness") == 0)
            let accepted = try BackupTests.posternd(data, ["--accept-rollback"])
            #expect(accepted.status == 0, "\(accepted.said)")
            let third = try await again()
            #expect(![first, second].contains(third))
            let fourth = try await again()
            #expect(fourth == third)
        }
    }
}
