import Base
import Crypto
import Glibc
import Identity
import Messages
import Service
import Store
import TestSupport
import Testing

/// The example client in Python, which was written from docs/protocol.md alone, against a real server.
@Suite struct PythonClientTests {
    private struct Run {
        let status: Int32?
        let lines: [String]
    }

    private static func start(
        _ server: TestServer, _ arguments: [String], key: Secret? = nil
    ) throws -> (process: ChildProcess, output: String) {
        let (keyFile, output) = ("\(server.directory)/key", "\(server.directory)/python")
        writeFile(keyFile, (key ?? server.adminKey).withBytes { [UInt8]($0) })
        let process = try ChildProcess.pythonClient(
            "127.0.0.1:\(server.port)", keyIn: keyFile, arguments, output: output)
        return (process, output)
    }

    /// Runs it to its end.
    private static func run(_ server: TestServer, _ arguments: [String], key: Secret? = nil) throws -> Run {
        let (process, output) = try start(server, arguments, key: key)
        let run = Run(status: process.wait(seconds: 60), lines: ChildProcess.lines(in: output))
        if run.lines.contains(where: { $0.contains("ModuleNotFoundError") || $0.contains("protoc is missing") }) {
            Issue.record("python3-protobuf or protobuf-compiler is missing: run tools/bootstrap --tests")
        }
        return run
    }

    /// A file with a password, for `--email` and `--password-file`.
    private static func login(_ server: TestServer, _ password: String) -> [String] {
        writeFile("\(server.directory)/password", [UInt8](password.utf8))
        return ["--email", "ada@example.com", "--password-file", "\(server.directory)/password"]
    }

    /// The lines that the demo prints after the line about the ID token.
    private static let events = [
        "event: AUTH_STATE_CHANGE_INITIAL TOKEN_REFRESH_CAUSE_UNSPECIFIED",
        "refreshed on another connection",
        "event: AUTH_STATE_CHANGE_TOKEN_REFRESHED TOKEN_REFRESH_CAUSE_EXPIRED",
        "event: AUTH_STATE_CHANGE_SIGNED_OUT SIGNED_OUT",
        "the stream ended",
    ]

    @Test func theDemoSignsUpAndThenInAndSeesItsSessionEnd() async throws {
        try await withServer { server in
            let login = Self.login(server, "correct horse")
            let signedUp = try Self.run(server, login + ["demo"])
            #expect(signedUp.status == 0)
            let client = try IdentityClient(server)
            let user: UsersGetByEmailResponse = try client.client.call(
                "postern.v1.Users/GetByEmail", UsersGetByEmailRequest(email: "ada@example.com"))
            let uid = user.user?.uid ?? .empty
            for run in [signedUp, try Self.run(server, login + ["demo"])] {
                #expect(run.status == 0)
                #expect(run.lines.first == "signed in: ada@example.com")
                #expect(run.lines.dropFirst().first?.hasPrefix("verified: uid \(uid), session ") == true)
                #expect(Array(run.lines.dropFirst(2)) == Self.events)
            }
            let sessions: UsersListSessionsResponse = try client.client.call(
                "postern.v1.Users/ListSessions", UsersListSessionsRequest(uid: uid))
            #expect(sessions.sessions.isEmpty)
        }
    }

    /// Copies the client as a user does: the file and the folder proto/ beside it, nothing else of this repository.
    private static func copyClient(to folder: String) throws {
        let root = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let script = "mkdir \"$1\" && cp -r \"$0\"/proto \"$0\"/tools/examples/python/postern_client.py \"$1\""
        #expect(try ChildProcess("sh", ["-c", script, root, folder]).wait() == 0)
    }

    @Test func aCopyWithItsProtosBesideItWorks() async throws {
        try await withServer { server in
            let folder = "\(server.directory)/copied"
            try Self.copyClient(to: folder)
            let (keyFile, output) = ("\(server.directory)/key", "\(server.directory)/python")
            writeFile(keyFile, server.adminKey.withBytes { [UInt8]($0) })
            func run(_ arguments: [String]) throws -> (status: Int32?, said: String) {
                let process = try ChildProcess("/usr/bin/python3", arguments, output: output)
                return (process.wait(seconds: 60), String(decoding: readFile(output) ?? [], as: UTF8.self))
            }
            let client = "\(folder)/postern_client.py"
            let address = "127.0.0.1:\(server.port)"
            let demo = try run([client, address, "--api-key-file", keyFile, "demo"])
            #expect(demo.status == 0 && demo.said.contains("the stream ended"), "\(demo)")
            // The client beside the folders of proto/, and then without them.
            #expect(try ChildProcess("sh", ["-c", "mv \"$0\"/proto/* \"$0\"", folder]).wait() == 0)
            #expect(try run([client, address, "--api-key-file", keyFile, "demo"]).status == 0)
            #expect(try ChildProcess("sh", ["-c", "mv \"$0\"/postern \"$0\"/elsewhere", folder]).wait() == 0)
            let alone = try run([client, address, "--api-key-file", keyFile, "demo"])
            #expect(alone.status == 1 && alone.said.contains("copy the folder proto"), "\(alone)")
        }
    }

    @Test func eightThreadsShareAConnection() async throws {
        try await withServer { server in
            let folder = "\(server.directory)/copied"
            try Self.copyClient(to: folder)
            let (keyFile, output) = ("\(server.directory)/key", "\(server.directory)/python")
            writeFile(keyFile, server.adminKey.withBytes { [UInt8]($0) })
            let fixtures = "/" + #filePath.split(separator: "/").dropLast(2).joined(separator: "/") + "/Fixtures"
            let process = try ChildProcess(
                "/usr/bin/python3", ["\(fixtures)/python_threads.py", folder, "127.0.0.1:\(server.port)", keyFile],
                output: output)
            #expect(process.wait(seconds: 120) == 0)
            let said = String(decoding: readFile(output) ?? [], as: UTF8.self)
            #expect(said.contains("right: 640 of 640, the stream: True"), "\(said)")
        }
    }

    @Test func theDemoActsInTheTenantOfItsKey() async throws {
        try await withServer { server in
            let client = try server.connect()
            for tenantID in ["acme", "other"] as [Text] {
                let _: TenantsCreateResponse = try client.call(
                    "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: tenantID))
            }
            let made: ProjectCreateApiKeyResponse = try client.call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(role: .app, scope: Scope(tenants: .tenantID("acme"))))
            for arguments in [["demo"], ["--tenant", "acme", "demo"]] {
                #expect(try Self.run(server, arguments, key: made.secretKey).status == 0)
            }
            let users: UsersListResponse = try client.call(
                "postern.v1.Users/List", UsersListRequest(tenantID: "acme"))
            #expect(users.users.count == 2)
            let refused = try Self.run(server, ["--tenant", "other", "demo"], key: made.secretKey)
            #expect(refused.status == 1)
            #expect(
                refused.lines.last?.hasPrefix("postern_client: PERMISSION_DENIED INSUFFICIENT_PERMISSION: ") == true)
        }
    }

    @Test func aFailureIsToldWithItsReasonMetadataAndDelay() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            let wrong = Self.login(server, "another horse")
            let refused = try Self.run(server, wrong + ["demo"])
            #expect(refused.status == 1 && refused.lines.count == 1)
            let text = "postern_client: UNAUTHENTICATED INVALID_LOGIN_CREDENTIALS: "
            #expect(refused.lines.last?.hasPrefix(text) == true)
            var reasons: [String] = []
            while reasons.last != "TOO_MANY_ATTEMPTS_TRY_LATER" && reasons.count < 100 {
                reasons.append(failure { _ = try client.signIn("ada@example.com", password: "no horse") }.reason)
            }
            let throttled = try Self.run(server, wrong + ["demo"]).lines.last ?? ""
            #expect(throttled.hasPrefix("postern_client: RESOURCE_EXHAUSTED TOO_MANY_ATTEMPTS_TRY_LATER: "))
            #expect(throttled.contains("; retry after "))
            try client.setTenant(["client.permissions.disabled_user_signup"]) {
                $0.client = ClientConfig(permissions: ClientPermissions(disabledUserSignup: true))
            }
            let restricted = try Self.run(server, ["demo"]).lines.last ?? ""
            #expect(restricted.hasPrefix("postern_client: PERMISSION_DENIED ADMIN_RESTRICTED_OPERATION: "))
            #expect(restricted.contains("; web_code: auth/admin-restricted-operation; "))
        }
    }

    @Test func aCallerItDoesNotKnowIsRefusedAndNobodyListeningIsTold() async throws {
        try await withServer { server in
            let unknown = try Self.run(server, ["demo"], key: Secret("pk_x_y"))
            #expect(unknown.status == 1)
            #expect(unknown.lines.last?.hasPrefix("postern_client: UNAUTHENTICATED CALLER_UNAUTHENTICATED: ") == true)
            let output = "\(server.directory)/nobody"
            let nobody = try ChildProcess.pythonClient(
                "127.0.0.1:\(try CrashTests.freePort())", keyIn: "\(server.directory)/key", ["demo"], output: output)
            #expect(nobody.wait(seconds: 60) == 1)
            #expect(ChildProcess.lines(in: output) == ["postern_client: [Errno 111] Connection refused"])
        }
    }

    // MARK: The feed of revocations

    /// Waits for a line that begins like this; the process writes when it likes.
    private static func line(_ beginning: String, in output: String) async throws -> String {
        func found() -> String? { ChildProcess.lines(in: output).last { $0.hasPrefix(beginning) } }
        try await until("the line \(beginning) in \(ChildProcess.lines(in: output))") { found() != nil }
        return try #require(found())
    }

    @Test func aSnapshotLargerThanTheWindowComesWhole() async throws {
        try await withServer { server in
            let count: Int64 = 5_000
            try await server.project.store.write { transaction in
                for number in 1...count {
                    try transaction.put(
                        Tables.revocations, SequenceKey(.empty, number),
                        Revocation(
                            kind: .session, uid: "ada", sessionID: Text("\(number)"),
                            timeMicros: server.clock.clock.now().microseconds))
                    try transaction.put(Tables.revocationTenants, RevocationKey(number), [])
                }
            }
            let (process, output) = try Self.start(server, ["watch-revocations"])
            _ = try await Self.line("complete up to ", in: output)
            process.send(signal: SIGTERM)
            #expect(process.wait(seconds: 60) == 0)
            let revoked = ChildProcess.lines(in: output).filter { $0.hasPrefix("revoked: ") }
            #expect(revoked.count == Int(count) && Set(revoked).count == Int(count))
        }
    }

    @Test func theFeedGoesOnWhereItWasInterruptedAndSaysThatTheServerStops() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let (ada, bob) = (try client.signUp("ada@example.com"), try client.signUp("bob@example.com"))
            func revoke(_ user: AccountsSignUpResponse) throws -> String {
                let uid = try #require(user.user).uid
                let _: UsersRevokeTokensResponse = try client.client.call(
                    "postern.v1.Users/RevokeTokens", UsersRevokeTokensRequest(uid: uid))
                return "revoked: kind: REVOCATION_KIND_USER uid: \"\(uid)\""
            }
            let first = try Self.start(server, ["watch-revocations"])
            let complete = try await Self.line("complete up to ", in: first.output)
            #expect(
                ChildProcess.lines(in: first.output).first?.hasPrefix("snapshot: SNAPSHOT_REASON_NO_CURSOR") == true)
            _ = try await Self.line(try revoke(ada), in: first.output)
            first.process.send(signal: SIGTERM)
            #expect(first.process.wait(seconds: 60) == 0)
            let missed = try revoke(bob)
            let cursor = complete.split(separator: " ").last.map(String.init) ?? ""
            let second = try Self.start(server, ["--cursor", cursor, "watch-revocations"])
            _ = try await Self.line(missed, in: second.output)
            #expect(!ChildProcess.lines(in: second.output).contains { $0.hasPrefix("snapshot") })
            await server.instance.drain()
            #expect(second.process.wait(seconds: 60) == 1)
            let lines = ChildProcess.lines(in: second.output)
            #expect(lines.contains("GOAWAY: The server stops."))
            #expect(lines.last?.hasPrefix("postern_client: UNAVAILABLE SHUTTING_DOWN: ") == true)
        }
    }
}
