import Base
import Messages
import PosternAdmin
import PosternClient
import TestSupport
import Testing

/// Importing users whose passwords were hashed in several ways, and copying users with their passwords.
@Suite(.timeLimit(.minutes(2))) struct HashSpecImportTests {
    private static let bcrypt = NamedHashSpec(name: "b", spec: PasswordHashSpec(algorithm: .bcrypt(BcryptSpec())))
    private static let argon2 = NamedHashSpec(name: "a", spec: PasswordHashSpec(algorithm: .argon2id(Argon2idSpec())))

    private static func row(_ uid: Text, _ spec: NamedHashSpec, _ hash: String) -> ImportUser {
        var row = ImportUser(uid: uid, email: Text("\(uid)@example.com"))
        (row.passwordHash, row.hashSpec) = (Secret([UInt8](hash.utf8)), spec.name)
        return row
    }

    /// The vectors of Openwall's crypt_blowfish and of Argon2's reference implementation.
    private static let rows = [
        row("ann", bcrypt, "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"),
        row("bob", argon2, "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"),
    ]
    private static let passwords: [(uid: Text, password: Secret)] = [
        ("ann", Secret("U*U")), ("bob", Secret("password")),
    ]

    private static func expectSignIns(_ channel: Channel, tenantID: Text) async throws {
        for (uid, password) in passwords {
            let request = AccountsSignInWithPasswordRequest(
                tenantID: tenantID, email: Text("\(uid)@example.com"), password: password)
            let signedIn = try await AccountsClient(channel: channel).signInWithPassword(request)
            #expect(signedIn.user?.uid == uid)
        }
    }

    /// What an export sends, cut off before its last message.
    private struct CutExport: AsyncSequence, AsyncIteratorProtocol {
        var messages: ArraySlice<UsersExportResponse>

        func makeAsyncIterator() -> CutExport { self }

        mutating func next() async -> UsersExportResponse? { messages.popFirst() }
    }

    @Test func `Rows name the specs of their hashes`() async throws {
        try await AdminScene.run { scene in
            let specs = [Self.bcrypt, Self.argon2]
            let report = try await scene.tenant.importUsers(Self.rows, hashSpecs: specs)
            #expect(report.createdCount == 2 && report.rejections.isEmpty)
            try await Self.expectSignIns(scene.channel, tenantID: .empty)
            // A row without a name has the import's own spec.
            var plain = Self.rows
            plain[0].hashSpec = .empty
            let again = try await scene.tenant.importUsers(
                plain, spec: Self.bcrypt.spec, hashSpecs: [Self.argon2], onConflict: .replace)
            #expect(again.replacedCount == 2 && again.rejections.isEmpty)
            try await Self.expectSignIns(scene.channel, tenantID: .empty)
        }
    }

    @Test func `A thousand specs are taken, though no message holds them`() async throws {
        try await AdminScene.run { scene in
            let specs = (1...1_001).map { number in
                let spec = DigestSpec(function: .sha256, rounds: Int32(number))
                return NamedHashSpec(name: Text("s\(number)"), spec: PasswordHashSpec(algorithm: .digest(spec)))
            }
            var row = ImportUser(uid: "ann", email: "ann@example.com")
            (row.passwordHash, row.hashSpec) = (Secret([UInt8](repeating: 1, count: 32)), "s1000")
            let report = try await scene.tenant.importUsers([row], hashSpecs: Array(specs.dropLast()))
            #expect(report.createdCount == 1 && report.rejections.isEmpty)
            let rows = [row]
            await expectRefusal("INVALID_HASH_SPEC") { () throws(Failure) in
                _ = try await scene.tenant.importUsers(rows, hashSpecs: specs)
            }
        }
    }

    @Test func `After a lost connection the next stream has the specs, too`() async throws {
        try await AdminScene.runThroughProxy { scene, proxy in
            let hash = "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"
            let rows = (0..<3_000).map { Self.row(Text("user-\($0)"), Self.bcrypt, hash) }
            var isCut = false
            let specs = [Self.bcrypt]
            let report = try await scene.tenant.importUsers(rows, hashSpecs: specs, onConflict: .skip) { report in
                guard !isCut, report.checkpoint >= 1_000 else { return }
                isCut = true
                proxy.sever()
            }
            #expect(isCut && report.checkpoint == 3_000 && report.rejections.isEmpty)
            #expect(report.createdCount + report.skippedCount == 3_000)
        }
    }

    @Test func `An export is imported with its specs, and the passwords go on`() async throws {
        try await AdminScene.run { scene in
            _ = try await scene.tenant.importUsers(Self.rows, hashSpecs: [Self.bcrypt, Self.argon2])
            try await scene.project.createTenant("acme")
            let (_, key) = try await scene.project.createApiKey(role: .projectAdmin, exportPasswordHashes: true)
            let exporting = try Channel(address: "127.0.0.1:\(scene.server.port)", credentials: .apiKey(key))
            let old = TenantAdmin(channel: exporting, tenantID: .empty)
            let export = try await old.exportUsers(includingPasswordHashes: true)
            let report = try await scene.project.tenant("acme").importUsers(exported: export)
            #expect(report.createdCount == 2 && report.rejections.isEmpty)
            try await Self.expectSignIns(scene.channel, tenantID: "acme")
            await exporting.shutdown()
        }
    }

    @Test func `An export that was cut off is an error, and its users are imported`() async throws {
        try await AdminScene.run { scene in
            let message = UsersExportResponse(
                users: Self.rows, hashSpecs: [Self.bcrypt, Self.argon2], cursor: "more follows")
            let failure = await #expect(throws: Failure.self) {
                try await scene.tenant.importUsers(exported: CutExport(messages: [message]))
            }
            #expect(failure?.reason == "STREAM_ENDED" && failure?.metadataValue("checkpoint") == "2")
            try await Self.expectSignIns(scene.channel, tenantID: .empty)
        }
    }
}
