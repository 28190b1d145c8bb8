import Base
import Glibc
import Messages
import TestSupport
import Testing

/// API keys, signing keys, and posternd as its operator meets it.
@Suite struct ProjectTests {
    @Test(
        arguments: [
            (Role.unspecified, Scope.Tenants.all(true), "INVALID_ROLE"), (.any, .all(true), "INVALID_ROLE"),
            (.app, nil, "INVALID_SCOPE"), (.app, .all(false), "INVALID_SCOPE"),
            (.projectAdmin, .tenantID("acme"), "INVALID_SCOPE"), (.app, .tenantID("acme"), "TENANT_NOT_FOUND"),
            (.app, .tenantID(""), ""), (.verifier, .all(true), ""),
        ] as [(Role, Scope.Tenants?, String)])
    func aKeyHasARoleAndAScope(_ role: Role, _ scope: Scope.Tenants?, _ reason: String) async throws {
        try await withServer { server in
            let client = try server.connect()
            let refused = failure {
                let _: ProjectCreateApiKeyResponse = try client.call(
                    "postern.v1.Project/CreateApiKey",
                    ProjectCreateApiKeyRequest(role: role, scope: Scope(tenants: scope)))
            }
            #expect(refused.reason == reason)
        }
    }

    @Test func aKeyIsShownOnceAndListedWithoutItsSecret() async throws {
        try await withServer { server in
            let client = try server.connect()
            let made: ProjectCreateApiKeyResponse = try client.call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(role: .app, scope: Scope(tenants: .all(true)), displayName: "web"))
            let secret = made.secretKey.withBytes { [UInt8]($0) }
            #expect(secret.starts(with: "pk_".utf8))
            let stream = client.nextStream()
            try client.send(
                client.request("postern.v1.Project/ListApiKeys", ProjectListApiKeysRequest(), stream: stream))
            let frame = try client.readFrame()
            let listed = try RawClient.response(frame, returning: ProjectListApiKeysResponse.self)
            #expect(listed.apiKeys.contains { $0.displayName == "web" })
            // The id is part of the key and is told; the random rest is not.
            #expect(frame.payload.firstRange(of: secret.suffix(43)) == nil)
        }
    }

    @Test func theLastAdminKeyCannotBeRevoked() async throws {
        try await withServer { server in
            let client = try server.connect()
            let listed: ProjectListApiKeysResponse = try client.call(
                "postern.v1.Project/ListApiKeys", ProjectListApiKeysRequest())
            let first = try #require(listed.apiKeys.first).apiKeyID
            func revoke(_ id: Text) -> String {
                failure {
                    let _: ProjectRevokeApiKeyResponse = try client.call(
                        "postern.v1.Project/RevokeApiKey", ProjectRevokeApiKeyRequest(apiKeyID: id))
                }.reason
            }
            #expect(revoke("nobody") == "API_KEY_NOT_FOUND")
            #expect(revoke(first) == "LAST_ADMIN_KEY")
            let _: ProjectCreateApiKeyResponse = try client.call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(role: .projectAdmin, scope: Scope(tenants: .all(true))))
            #expect(revoke(first) == "")
            #expect(revoke(first) == "CALLER_UNAUTHENTICATED")
        }
    }

    @Test func aSigningKeyIsPublishedAheadAndRetiresLater() async throws {
        try await withServer { server in
            let client = try server.connect()
            func rotate(_ algorithm: Text, ahead: Int64) throws -> SigningKeyInfo? {
                let made: ProjectRotateSigningKeyResponse = try client.call(
                    "postern.v1.Project/RotateSigningKey",
                    ProjectRotateSigningKeyRequest(algorithm: algorithm, publishAheadSeconds: ahead))
                return made.key
            }
            func states() throws -> [SigningKeyState] {
                let listed: ProjectListSigningKeysResponse = try client.call(
                    "postern.v1.Project/ListSigningKeys", ProjectListSigningKeysRequest())
                let keys = listed.keys.filter { $0.tokenUse == .idToken }
                return keys.sorted { $0.createdAtMicros < $1.createdAtMicros }.map(\.state)
            }
            #expect(try states() == [.signing])
            server.clock.advance(by: .seconds(1))
            #expect(try rotate("EdDSA", ahead: 3_600)?.state == .published)
            #expect(try states() == [.signing, .published])
            server.clock.advance(by: .seconds(3_600))
            #expect(try states() == [.retired, .signing])
            expectRefusal("INVALID_ALGORITHM") { _ = try rotate("HS256", ahead: 0) }
            expectRefusal("INVALID_DURATION") { _ = try rotate("", ahead: -1) }
        }
    }

    @Test func serverInfoAndStatsTellWhatRuns() async throws {
        try await withServer { server in
            let client = try server.connect()
            let info: ProjectServerInfoResponse = try client.call(
                "postern.v1.Project/ServerInfo", ProjectServerInfoRequest())
            #expect(info.projectID == "test" && info.issuer == "https://issuer.test/test" && info.protocolVersion == 1)
            let stats: ProjectStatsResponse = try client.call("postern.v1.Project/Stats", ProjectStatsRequest())
            #expect(stats.values.contains { $0.value > 0 })
        }
    }

    // MARK: posternd

    /// Runs posternd to its end; returns its exit status and what it said.
    private static func run(_ arguments: [String], in directory: String) throws -> (status: Int32, said: String) {
        let output = "\(directory)/said"
        // timeout(1): one that serves instead of refusing would never end.
        let process = try ChildProcess("timeout", ["20", ChildProcess.built("posternd")] + arguments, output: output)
        let status = process.wait()
        return (status, String(decoding: readFile(output) ?? [], as: UTF8.self))
    }

    @Test(arguments: [
        (["--no-such-flag"], "no-such-flag"), (["--listen-address", "nonsense"], "listen"),
        (["--listen-address", "0.0.0.0:7400"], "loopback"), (["--threads", "257"], "threads"),
        (["--threads", "many"], "threads"), (["--config", "/nowhere/postern.json"], "/nowhere/postern.json"),
    ])
    func nonsenseIsRefusedWithALineThatNamesIt(_ arguments: [String], _ named: String) async throws {
        try withTemporaryDirectory { directory in
            let (status, said) = try Self.run(["--data-directory", "\(directory)/data"] + arguments, in: directory)
            #expect(status != 0)
            #expect(said.contains(named), "\(said)")
            #expect(access("\(directory)/data", F_OK) != 0)
        }
    }

    @Test func flagsWinOverTheFileAndPrintConfigTells() async throws {
        try withTemporaryDirectory { directory in
            let file = "\(directory)/postern.json"
            writeFile(file, [UInt8](#"{"listen_address": "127.0.0.1:1111", "project_id": "from-file"}"#.utf8))
            let (status, said) = try Self.run(
                ["--config", file, "--listen-address", "127.0.0.1:2222", "--print-config"], in: directory)
            #expect(status == 0)
            #expect(said.contains("127.0.0.1:2222") && said.contains("from-file") && !said.contains("1111"))
            writeFile(file, [UInt8](#"{"listen_adress": "127.0.0.1:1111"}"#.utf8))
            #expect(try Self.run(["--config", file, "--print-config"], in: directory).said.contains("listen_adress"))
            writeFile(file, [UInt8](#"{"threads": 1, "threads": 2}"#.utf8))
            #expect(try Self.run(["--config", file, "--print-config"], in: directory).status != 0)
        }
    }

    @Test func sigtermStopsItThoughItWasStartedWithSignalsBlocked() async throws {
        try withTemporaryDirectory { directory in
            // Blocks all signals, as a child inherits it from a supervisor's thread that takes no signals.
            var all = sigset_t()
            var before = sigset_t()
            sigfillset(&all)
            pthread_sigmask(SIG_SETMASK, &all, &before)
            let started = Result { try CrashTests.start(directory, try CrashTests.freePort()) }
            pthread_sigmask(SIG_SETMASK, &before, nil)
            let server = try started.get()
            // The port takes connections a little before the signals are watched.
            try blockUntil("posternd serves") {
                String(decoding: readFile("\(directory)/log") ?? [], as: UTF8.self).contains("serving")
            }
            server.send(signal: SIGTERM)
            #expect(server.wait(seconds: 30) == 0)
        }
    }

    @Test func aFolderInUseAndALostMasterKeyAreRefused() async throws {
        try withTemporaryDirectory { directory in
            let server = try CrashTests.start(directory, try CrashTests.freePort())
            let arguments = [
                "--data-directory", directory, "--listen-address", "127.0.0.1:\(try CrashTests.freePort())",
                "--http-address", "off",
            ]
            let second = try Self.run(arguments, in: directory)
            #expect(second.status != 0 && second.said.contains("use"))
            #expect(try Self.run(arguments + ["--recover-admin"], in: directory).status != 0)
            server.kill()
            let recovered = try Self.run(arguments + ["--recover-admin"], in: directory)
            #expect(recovered.status == 0, "\(recovered.said)")
            let names = ["master-key", "master.key", "masterkey"].map { "\(directory)/\($0)" }
            let key = try #require(names.first { access($0, F_OK) == 0 })
            #expect(rename(key, "\(key).away") == 0)
            let lost = try Self.run(arguments, in: directory)
            #expect(lost.status != 0 && lost.said.contains("master"))
        }
    }
}
