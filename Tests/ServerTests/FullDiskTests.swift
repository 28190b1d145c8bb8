import Base
import Glibc
import Messages
import TestSupport
import Testing

/// posternd on a disk that fills up.
@Suite struct FullDiskTests {
    /// The room for the data file in all these tests.
    private static let room = "space \(5 << 20)"

    /// Makes users with a page each until one does not fit, then small ones until these do not fit. Returns how many
    /// have a page each.
    private static func fill(_ server: FaultyServer) throws -> Int {
        var fat = 0
        while try server.create("fat\(fat)", photoByteCount: 2_000) == nil { fat += 1 }
        var small = 0
        var refused = 0
        while refused < 20 {
            let reason = try server.create("small\(small)")
            #expect(reason == nil || reason == "STORE_FULL")
            if reason == nil { small += 1 } else { refused += 1 }
        }
        return fat
    }

    private static func signIn(_ server: FaultyServer, _ index: Int) throws -> AccountsSignInWithPasswordResponse {
        try server.client.call(
            "postern.v1.Accounts/SignInWithPassword",
            AccountsSignInWithPasswordRequest(
                tenantID: "fast", email: Text("known\(index)@example.com"), password: Secret("secret1")),
            returning: AccountsSignInWithPasswordResponse.self)
    }

    private static func prepare(_ server: FaultyServer) throws -> Text {
        for index in 0..<60 {
            let request = UsersCreateRequest(
                tenantID: "fast", uid: Text("known\(index)"), email: Text("known\(index)@example.com"),
                password: Secret("secret1"))
            #expect(try server.outcome("Users/Create", request, UsersCreateResponse.self) == nil)
        }
        for index in 0..<300 { #expect(try server.create("doomed\(index)") == nil) }
        return try server.client.call(
            "postern.v1.Project/CreateApiKey",
            ProjectCreateApiKeyRequest(role: .app, scope: Scope(tenants: .tenantID("fast"))),
            returning: ProjectCreateApiKeyResponse.self
        ).apiKey?.apiKeyID ?? .empty
    }

    @Test func `A full disk stops growth; reading, signing in, revoking and deleting go on`() throws {
        try withFaultyServer { server in
            let apiKeyID = try Self.prepare(server)
            let sessions = try (0..<20).map { try Self.signIn(server, $0) }
            server.setRules([Self.room])
            let fat = try Self.fill(server)
            #expect(fat > 100)
            #expect(try server.get("/healthz").hasPrefix("HTTP/1.1 200 "))
            #expect(try server.get("/healthz").hasSuffix("DEGRADED: \(StoreTroubleText.diskFull)\n"))
            #expect(try server.get("/metrics").contains("postern_store_degraded 1\n"))
            for index in 0..<60 { #expect(try server.exists("known\(index)")) }
            for index in 20..<40 { _ = try Self.signIn(server, index) }
            try Self.useReserve(server, sessions, apiKeyID)
            for index in 0..<300 { #expect(try server.delete("doomed\(index)") == nil) }
            for index in 0..<fat { #expect(try server.delete("fat\(index)") == nil) }
            #expect(try server.create("again") == nil)
            #expect(try server.get("/healthz").hasSuffix("\r\nSERVING\n"))
            #expect(server.log.components(of: "the store is in trouble") == 1)
        }
    }

    private static func useReserve(
        _ server: FaultyServer, _ sessions: [AccountsSignInWithPasswordResponse], _ apiKeyID: Text
    ) throws {
        for (index, session) in sessions.enumerated() {
            let refreshed = try server.client.call(
                "postern.v1.Tokens/Refresh",
                TokensRefreshRequest(tenantID: "fast", refreshToken: session.tokens?.refreshToken ?? .empty),
                returning: TokensRefreshResponse.self)
            guard index % 2 == 0 else { continue }
            let signOut = SessionsSignOutRequest(
                tenantID: "fast", refreshToken: refreshed.tokens?.refreshToken ?? .empty)
            #expect(try server.outcome("Sessions/SignOut", signOut, SessionsSignOutResponse.self) == nil)
        }
        for index in 0..<60 {
            let uid = Text("known\(index)")
            let revoke = UsersRevokeTokensRequest(tenantID: "fast", uid: uid)
            #expect(try server.outcome("Users/RevokeTokens", revoke, UsersRevokeTokensResponse.self) == nil)
            guard index % 3 == 0 else { continue }
            let disable = UsersUpdateRequest(
                tenantID: "fast", uid: uid, updateMask: ProtobufFieldMask(paths: ["disabled"]), disabled: true)
            #expect(try server.outcome("Users/Update", disable, UsersUpdateResponse.self) == nil)
        }
        let revokeKey = ProjectRevokeApiKeyRequest(apiKeyID: apiKeyID)
        #expect(try server.outcome("Project/RevokeApiKey", revokeKey, ProjectRevokeApiKeyResponse.self) == nil)
    }

    /// The witness is left behind from the first commit on: its disk overwrites no block without room for another.
    @Test func `A full disk that takes no byte of the witness either is read, and a restart on it serves`() throws {
        try withFaultyServer(full: "/data/witness") { server in
            #expect(try server.create("before") == nil)
            server.setRules([Self.room])
            func fill(_ name: String) throws -> (count: Int, reason: Text?) {
                for number in 0..<3_000 {
                    let reason = try server.create("\(name)\(number)", photoByteCount: 2_000)
                    if let reason { return (number, reason) }
                }
                return (3_000, nil)
            }
            let first = try fill("fat")
            #expect(first.count > 0 && first.reason == "STORE_FULL")
            let errors = "postern_store_witness_errors_total "
            let line = try server.get("/metrics").split(separator: "\n").first { $0.hasPrefix(errors) }
            let errorCount = line.flatMap { Double($0.dropFirst(errors.count)) } ?? 0
            #expect(errorCount > 100)
            for uid in ["before", "fat0", "fat\(first.count - 1)"] { #expect(try server.exists(uid)) }
            server.process.kill()
            try server.restart()
            for uid in ["before", "fat0", "fat\(first.count - 1)"] { #expect(try server.exists(uid)) }
            // A restart may find pages within the file that were not free before.
            let second = try fill("more")
            #expect(second.reason == "STORE_FULL")
            #expect(try server.delete("fat0") == nil)
            #expect(try server.exists("before") && !server.exists("fat0"))
        }
    }

    @Test func `A disk with room again is used without a restart, and a restart on a full disk serves`() throws {
        try withFaultyServer { server in
            server.setRules([Self.room])
            let fat = try Self.fill(server)
            server.process.kill()
            try server.restart()
            #expect(try server.exists("fat\(fat - 1)"))
            // A restart may find pages within the file that were not free before.
            var (more, reason) = (0, Text?.none)
            while reason == nil, more < fat / 2 {
                more += 1
                reason = try server.create("more\(more)", photoByteCount: 2_000)
            }
            #expect(reason == "STORE_FULL")
            #expect(try server.delete("fat0") == nil)
            server.setRules([])
            // The server tries a full disk again twice a second.
            try blockUntil("the disk is used again") {
                try server.create("more\(more)", photoByteCount: 2_000) == nil
            }
            #expect(try server.get("/healthz").hasSuffix("\r\nSERVING\n"))
        }
    }

    private static func isRefused<Response: Message>(
        _ client: RawClient, _ method: String, _ request: some Message, _: Response.Type
    ) throws -> Bool {
        do {
            _ = try client.call("postern.v1.\(method)", request, returning: Response.self)
            return false
        } catch let failure as Failure {
            #expect(failure.reason == "STORE_FULL")
            return true
        }
    }

    /// Makes users with a page each, then keys like the one that a recovery makes, until neither fits.
    private static func fill(_ client: RawClient) throws {
        // By default, one tenant fills an eighth of the map.
        let wide = Tenant(tenantID: .empty, quotas: TenantQuotas(storedBytes: 1 << 40))
        _ = try client.call(
            "postern.v1.Tenants/Update",
            TenantsUpdateRequest(tenant: wide, updateMask: ProtobufFieldMask(paths: ["quotas.stored_bytes"])),
            returning: TenantsUpdateResponse.self)
        let photoURL = Text("https://example.com/" + String(repeating: "x", count: 1_980))
        var userCount = 0
        while try !isRefused(
            client, "Users/Create", UsersCreateRequest(uid: Text("u\(userCount)"), photoURL: photoURL),
            UsersCreateResponse.self)
        {
            userCount += 1
        }
        let key = ProjectCreateApiKeyRequest(
            role: .projectAdmin, scope: Scope(tenants: .all(true)), displayName: "recovered admin key")
        var refusedCount = 0
        for _ in 0..<1_000 where refusedCount < 20 {
            let isRefused = try isRefused(client, "Project/CreateApiKey", key, ProjectCreateApiKeyResponse.self)
            refusedCount = isRefused ? refusedCount + 1 : 0
        }
        #expect(userCount > 100 && refusedCount == 20)
    }

    /// Runs `body` beside a stopped server's full store, with the directory around it, its own, and its settings.
    private static func withFullStore(
        _ body: (_ directory: String, _ data: String, _ settings: [String]) throws -> Void
    ) throws {
        try withTemporaryDirectory { directory in
            let (data, port) = ("\(directory)/data", try freePort())
            #expect(mkdir(data, 0o700) == 0)
            let small = ["--map-bytes", "\(4 << 20)"]
            let server = try CrashTests.start(data, port, settings: small)
            let client = try RawClient(port: port)
            client.apiKey = try CrashTests.adminKey(data)
            try fill(client)
            server.kill()
            try body(directory, data, small)
        }
    }

    /// An operator without a key could make no room.
    @Test func `A lost admin key is recovered on a full store`() throws {
        try Self.withFullStore { directory, data, small in
            for _ in 0..<3 {
                let recovered = try BackupTests.posternd(data, ["--recover-admin"] + small)
                #expect(recovered.status == 0, "\(recovered.said)")
            }
        }
    }

    /// Takes a backup of a stopped server's store; returns its path.
    private static func takeBackup(of data: String, into directory: String, settings: [String]) throws -> String {
        #expect(mkdir(directory, 0o700) == 0)
        let server = try CrashTests.start(data, try freePort(), settings: settings + ["--backup-directory", directory])
        defer { server.kill() }
        func taken() throws -> String? {
            try DirectoryNames.list(directory).first { $0.hasSuffix(".backup") }.map { "\(directory)/\($0)" }
        }
        try blockUntil("posternd takes a backup") { try taken() != nil }
        let path = try taken()
        return try #require(path)
    }

    @Test func `A rollback is accepted on a full store, and a full store is restored`() throws {
        try Self.withFullStore { directory, data, small in
            let backup = try Self.takeBackup(of: data, into: "\(directory)/backups", settings: small)
            for _ in 0..<3 {
                unlink("\(data)/witness")
                let accepted = try BackupTests.posternd(data, ["--accept-rollback"] + small)
                #expect(accepted.status == 0 && accepted.said.contains("Accepted"), "\(accepted.said)")
                let restored = try BackupTests.posternd(data, ["--restore-backup", backup] + small)
                #expect(restored.status == 0 && restored.said.contains("Restored."), "\(restored.said)")
            }
        }
    }

    @Test func `A data directory that is removed is not written to`() throws {
        try withFaultyServer { server throws in
            #expect(try server.create("before") == nil)
            unlink("\(server.directory)/data/data.mdb")
            #expect(try server.create("after") == "STORE_UNAVAILABLE")
            #expect(try server.exists("before"))
            #expect(try server.get("/healthz").contains("DEGRADED: the data file was removed"))
        }
    }
}

private enum StoreTroubleText {
    static let diskFull = "the disk is full; only what frees space or revokes is written"
}

extension String {
    /// How often `part` occurs.
    fileprivate func components(of part: String) -> Int {
        var count = 0
        var rest = self[...]
        while let range = rest.firstRange(of: part) {
            count += 1
            rest = rest[range.upperBound...]
        }
        return count
    }
}
