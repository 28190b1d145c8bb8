import Base
import Crypto
import Messages
import TestSupport
import Testing

/// What `--check-backup` and `--restore-backup` say of the effects of a restore.
@Suite struct RestoreReportTests {
    private static func makeUsers(_ client: RawClient, _ uids: [Text]) throws {
        for uid in uids {
            let _: UsersCreateResponse = try client.call("postern.v1.Users/Create", UsersCreateRequest(uid: uid))
        }
    }

    /// The older of two backups was restored. The store that went on from it has fewer events than the newer backup,
    /// and none of them is in that backup.
    @Test func `The events that a restore undoes are found although the histories differ`() async throws {
        try await withTemporaryDirectory { directory in
            let (clock, masterKey) = (ManualClock(), MasterKey.generate(random: .system))
            let (data, older, newer) = ("\(directory)/data", "\(directory)/older", "\(directory)/newer")
            let adminKey = try await withServer(directory: data, clock: clock, masterKey: masterKey) { server in
                let client = try server.connect()
                try Self.makeUsers(client, ["ada"])
                writeFile(older, try BackupTests.take(server))
                try Self.makeUsers(client, ["bea", "cid", "dan", "eve", "fay"])
                writeFile(newer, try BackupTests.take(server))
                return server.adminKey
            }
            BackupTests.write(masterKey, to: "\(data)/master-key")
            let first = try BackupTests.posternd(data, ["--restore-backup", older])
            #expect(first.status == 0 && first.said.contains("userCreated: 5\n"), "\(first.said)")
            try await withServer(directory: data, clock: clock, masterKey: masterKey, adminKey: adminKey) { server in
                try Self.makeUsers(try server.connect(), ["gus", "hal"])
            }
            let check = try BackupTests.posternd(data, ["--check-backup", newer])
            #expect(check.status == 0 && check.said.contains("userCreated: 2\n"), "\(check.said)")
            #expect(check.said.contains("backupRestored: 1\n"), "\(check.said)")
        }
    }

    @Test func `Each restore keeps the store of before, also within one second`() async throws {
        try await withTemporaryDirectory { directory in
            let (clock, masterKey) = (ManualClock(), MasterKey.generate(random: .system))
            let (data, backup) = ("\(directory)/data", "\(directory)/backup")
            try await withServer(directory: data, clock: clock, masterKey: masterKey) { server in
                writeFile(backup, try BackupTests.take(server))
            }
            BackupTests.write(masterKey, to: "\(data)/master-key")
            for number in 1...4 {
                let restored = try BackupTests.posternd(data, ["--restore-backup", backup])
                #expect(restored.status == 0, "\(restored.said)")
                let kept = fileNames(in: data).filter { $0.hasPrefix("data.mdb.before-restore-") }
                #expect(kept.count == number, "\(kept)")
            }
        }
    }

    @Test func `A restore names the keys that were revoked since the backup`() async throws {
        try await withTemporaryDirectory { directory in
            let (clock, masterKey) = (ManualClock(), MasterKey.generate(random: .system))
            let (data, backup) = ("\(directory)/data", "\(directory)/backup")
            let (revoked, kept): ([Text], Text) = try await withServer(
                directory: data, clock: clock, masterKey: masterKey
            ) { server in
                let client = try server.connect()
                let backEnd = try BackEnd(server)
                let apiKeys = try (0..<2).map { _ in
                    let made: ProjectCreateApiKeyResponse = try client.call(
                        "postern.v1.Project/CreateApiKey",
                        ProjectCreateApiKeyRequest(role: .tenantAdmin, scope: Scope(tenants: .all(true))))
                    return try #require(made.apiKey).apiKeyID
                }
                let listed: ProjectListSigningKeysResponse = try client.call(
                    "postern.v1.Project/ListSigningKeys", ProjectListSigningKeysRequest())
                let signingKey = try #require(listed.keys.first { $0.tokenUse == .idToken }).keyID
                writeFile(backup, try BackupTests.take(server))
                let _: ProjectRevokeApiKeyResponse = try client.call(
                    "postern.v1.Project/RevokeApiKey", ProjectRevokeApiKeyRequest(apiKeyID: apiKeys[0]))
                let _: ProjectRevokeServiceAccountKeyResponse = try client.call(
                    "postern.v1.Project/RevokeServiceAccountKey",
                    ProjectRevokeServiceAccountKeyRequest(serviceAccountID: "backend", keyID: backEnd.keyID))
                let _: ProjectRotateSigningKeyResponse = try client.call(
                    "postern.v1.Project/RotateSigningKey", ProjectRotateSigningKeyRequest())
                let _: ProjectRevokeSigningKeyResponse = try client.call(
                    "postern.v1.Project/RevokeSigningKey", ProjectRevokeSigningKeyRequest(keyID: signingKey))
                let revoked: [Text] = [
                    Text("  API key \(apiKeys[0])\n"), Text("  key of a service account backend/\(backEnd.keyID)\n"),
                    Text("  signing key \(signingKey)\n"),
                ]
                return (revoked, apiKeys[1])
            }
            BackupTests.write(masterKey, to: "\(data)/master-key")
            for action in ["--check-backup", "--restore-backup"] {
                let ended = try BackupTests.posternd(data, [action, backup])
                #expect(ended.status == 0, "\(ended.said)")
                for line in revoked { #expect(ended.said.contains(line.string), "\(line) in \(ended.said)") }
                #expect(!ended.said.contains(kept.string), "\(ended.said)")
            }
        }
    }
}
