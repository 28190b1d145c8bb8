import Base
import Identity
import Messages
import Service
import Store
import TestSupport
import Testing

/// Users.Export: everything of every user, in slices, to callers who may have it.
@Suite struct ExportTests {
    static func export(
        _ server: TestServer, _ request: UsersExportRequest, key: Secret? = nil
    ) throws -> [UsersExportResponse] {
        let stream = try RawStream<UsersExportResponse>(server, "postern.v1.Users/Export", request, apiKey: key)
        var messages: [UsersExportResponse] = []
        while let message = try stream.next() { messages.append(message) }
        return messages
    }

    /// A key that may export hashes.
    static func exporter(_ server: TestServer, tenantID: Text? = nil) throws -> Secret {
        let made: ProjectCreateApiKeyResponse = try server.connect().call(
            "postern.v1.Project/CreateApiKey",
            ProjectCreateApiKeyRequest(
                role: .tenantAdmin, scope: Scope(tenants: tenantID.map { .tenantID($0) } ?? .all(true)),
                exportPasswordHashes: true))
        return made.secretKey
    }

    private static let firebase = FirebaseScryptSpec(
        signerKey: Secret([UInt8](repeating: 7, count: 64)), saltSeparator: [7], rounds: 8, memoryCost: 14)

    /// A user with everything that there is.
    private static func rows() -> [ImportUser] {
        var ann = ImportUser(uid: "ann", email: "Ann@example.com", emailVerified: true, displayName: "Ann")
        (ann.photoURL, ann.phoneNumber, ann.disabled) = ("https://example.com/a.png", "+14155550101", true)
        ann.customClaimsJSON = [UInt8](#"{"role":"editor"}"#.utf8)
        (ann.createdAtMicros, ann.lastSignInAtMicros, ann.passwordUpdatedAtMicros) = (1_001, 2_002, 3_003)
        (ann.passwordHash, ann.salt) = (Secret([UInt8](repeating: 9, count: 64)), [1, 2, 3])
        (ann.hashSpec, ann.emailLinkSignIn) = ("theirs", true)
        ann.providers = [ProviderInfo(providerID: "google.com", rawID: "g-1", email: "ann@gmail.com")]
        ann.secondFactors = [
            ImportSecondFactor(
                factor: SecondFactor(
                    factorID: "f1", kind: .phone, displayName: "work", phoneNumber: "+14155550102", enrolledAtMicros: 4)
            ),
            ImportSecondFactor(
                factor: SecondFactor(factorID: "f2", kind: .totp, displayName: "app", enrolledAtMicros: 5),
                totpSecret: Secret([UInt8](repeating: 5, count: 20))),
        ]
        var bob = ImportUser(uid: "bob", email: "bob@example.com")
        bob.createdAtMicros = 1
        let bcrypt = "$2b$10$abcdefghijklmnopqrstuOr1b4Qy0bB1sQv0yWkqS5jV1WlV3Zx2y"
        (bob.passwordHash, bob.hashSpec, bob.passwordUpdatedAtMicros) = (Secret(bcrypt), "old", 6)
        return [ann, bob, ImportUser(uid: "carl", createdAtMicros: 1)]
    }

    private static let specs = [
        NamedHashSpec(name: "theirs", spec: PasswordHashSpec(algorithm: .firebaseScrypt(firebase))),
        NamedHashSpec(name: "old", spec: PasswordHashSpec(algorithm: .bcrypt(BcryptSpec()))),
    ]

    static func importAll(
        _ server: TestServer, _ rows: [ImportUser], _ specs: [NamedHashSpec], tenantID: Text = .empty,
        validateOnly: Bool = false
    ) throws -> UsersImportResponse {
        let request = UsersImportRequest(
            tenantID: tenantID, onConflict: .fail, users: rows, hashSpecs: specs, validateOnly: validateOnly)
        let stream = try ImportTests.Stream(server.connect(), request)
        let answer = try stream.answer()
        try stream.end()
        return answer
    }

    @Test func `Hashes of every kind are exported so that another server checks them`() async throws {
        try await withServer { server in
            // As many as an import takes, of every kind.
            let vectors = PasswordVector.all.suffix(16)
            let specs = vectors.enumerated().map { index, vector in
                NamedHashSpec(name: Text("s\(index)"), spec: PasswordHashSpec(algorithm: vector.algorithm))
            }
            let rows = vectors.enumerated().map { index, vector in
                ImportUser(
                    uid: Text("u\(100 + index)"), email: Text("u\(index)@x.com"), passwordHash: Secret(vector.hash),
                    salt: PasswordVector.salt, hashSpec: Text("s\(index)"))
            }
            #expect(try Self.importAll(server, rows, specs).createdCount == 16)
            let key = try Self.exporter(server)
            let exported = try Self.export(server, UsersExportRequest(includePasswordHashes: true), key: key)
            #expect(exported.flatMap(\.hashSpecs).count == 16)
            try await withServer { other in
                let again = try Self.importAll(other, exported.flatMap(\.users), exported.flatMap(\.hashSpecs))
                #expect(again.createdCount == 16 && again.rejections.isEmpty, "\(again.rejections)")
                let client = try IdentityClient(other)
                for index in 0..<16 {
                    let answer = try client.signIn(Text("u\(index)@x.com"), password: PasswordVector.password)
                    #expect(answer.user?.uid == Text("u\(100 + index)"))
                }
            }
        }
    }

    @Test func `What is exported can be imported, and is exported again as it was`() async throws {
        try await withServer { server in
            let imported = try Self.importAll(server, Self.rows(), Self.specs)
            #expect(imported.createdCount == 3 && imported.rejections.isEmpty, "\(imported.rejections)")
            let key = try Self.exporter(server)
            let first = try Self.export(server, UsersExportRequest(includePasswordHashes: true), key: key)
            #expect(first.count == 1 && first[0].cursor.isEmpty)
            let specs = first[0].hashSpecs
            #expect(specs.count == 2)
            #expect(specs.contains { $0.spec?.algorithm == .firebaseScrypt(Self.firebase) })
            var expected = Self.rows()
            for index in expected.indices {
                let original = expected[index]
                expected[index].hashSpec = first[0].users[index].hashSpec
                expected[index].providers = first[0].users[index].providers
                #expect(first[0].users[index].providers.filter { $0.providerID == "google.com" } == original.providers)
            }
            #expect(first[0].users == expected)
            let _: TenantsCreateResponse = try server.connect().call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "copy"))
            let again = try Self.importAll(server, first[0].users, specs, tenantID: "copy")
            #expect(again.createdCount == 3 && again.rejections.isEmpty, "\(again.rejections)")
            let second = try Self.export(
                server, UsersExportRequest(tenantID: "copy", includePasswordHashes: true), key: key)
            #expect(second.map(\.users) == first.map(\.users) && second.map(\.hashSpecs) == first.map(\.hashSpecs))
            var events: [EventKind] = []
            try server.project.store.read { transaction in
                try transaction.scanEvents(tenant: "copy") { stored in
                    events.append(try EventRecord(decoding: stored.payload).kind)
                    return true
                }
            }
            #expect(events.count { $0 == .passwordHashesExported } == 1)
        }
    }

    @Test func `Hashes leave with a right of their own only, and nothing secret without them`() async throws {
        try await withServer { server in
            _ = try Self.importAll(server, Self.rows(), Self.specs)
            // The role alone is not enough, not even that of a project-admin.
            expectRefusal("PASSWORD_HASH_EXPORT_NOT_ALLOWED") {
                _ = try Self.export(server, UsersExportRequest(includePasswordHashes: true))
            }
            let plain = try Self.export(server, UsersExportRequest())
            #expect(plain.flatMap(\.users).map(\.uid) == ["ann", "bob", "carl"])
            for row in plain.flatMap(\.users) {
                #expect(row.passwordHash.isEmpty && row.salt.isEmpty && row.hashSpec.isEmpty)
                #expect(row.secondFactors.allSatisfy { $0.totpSecret.isEmpty && $0.factor?.kind == .phone })
            }
            #expect(plain.allSatisfy { $0.hashSpecs.isEmpty })
            let client = try server.connect()
            let _: TenantsCreateResponse = try client.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
            let foreign = try Self.exporter(server, tenantID: "acme")
            expectRefusal("INSUFFICIENT_PERMISSION") {
                let stream = try RawStream<UsersExportResponse>(
                    server, "postern.v1.Users/Export", UsersExportRequest(tenantID: "other"), apiKey: foreign)
                _ = try stream.next()
            }
            for role in [Role.verifier, .app] {
                expectRefusal("INVALID_ROLE") {
                    let _: ProjectCreateApiKeyResponse = try client.call(
                        "postern.v1.Project/CreateApiKey",
                        ProjectCreateApiKeyRequest(
                            role: role, scope: Scope(tenants: .all(true)), exportPasswordHashes: true))
                }
            }
        }
    }

    @Test(arguments: [1, 2, 5]) func `Another stream goes on at any cursor`(_ rowsRead: Int) async throws {
        try await withServer(configure: { $0.limits.pageRowsReadMax = rowsRead }) { server in
            let rows = (0..<7).map { ImportUser(uid: Text("u\($0)")) }
            let client = try server.connect()
            #expect(try ImportTests.importing(client, rows).createdCount == 7)
            let whole = try Self.export(server, UsersExportRequest())
            #expect(whole.flatMap(\.users).map(\.uid) == rows.map(\.uid))
            #expect(whole.count == (7 + rowsRead - 1) / rowsRead)
            #expect(whole.dropLast().allSatisfy { !$0.cursor.isEmpty } && whole.last?.cursor.isEmpty == true)
            for index in whole.indices.dropLast() {
                let rest = try Self.export(server, UsersExportRequest(cursor: whole[index].cursor))
                #expect(rest.flatMap(\.users) == whole[(index + 1)...].flatMap(\.users))
            }
        }
    }

    @Test func `A cursor is good for its own export only`() async throws {
        try await withServer(configure: { $0.limits.pageRowsReadMax = 1 }) { server in
            let client = try server.connect()
            let _: TenantsCreateResponse = try client.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
            _ = try ImportTests.importing(client, [ImportUser(uid: "a"), ImportUser(uid: "b")])
            let cursor = try #require(try Self.export(server, UsersExportRequest()).first).cursor
            let key = try Self.exporter(server)
            let listed: UsersListResponse = try client.call("postern.v1.Users/List", UsersListRequest(pageSize: 1))
            let wrong = [
                UsersExportRequest(tenantID: "acme", cursor: cursor), UsersExportRequest(cursor: listed.nextPageToken),
                UsersExportRequest(cursor: cursor, includePasswordHashes: true), UsersExportRequest(cursor: "x"),
            ]
            for request in wrong {
                expectRefusal("INVALID_PAGE_TOKEN") { _ = try Self.export(server, request, key: key) }
            }
        }
    }

    // MARK: Importing what an export has

    @Test func `A trial writes nothing and says what an import would`() async throws {
        try await withServer { server in
            let client = try server.connect()
            _ = try ImportTests.importing(client, [ImportUser(uid: "ann", email: "bob@example.com")])
            let answer = try Self.importAll(server, Self.rows(), Self.specs, validateOnly: true)
            #expect(answer.createdCount == 1 && answer.checkpoint == 3)
            #expect(answer.rejections.map(\.reason) == ["DUPLICATE_LOCAL_ID", "EMAIL_EXISTS"])
            let counted: UsersCountResponse = try client.call("postern.v1.Users/Count", UsersCountRequest())
            #expect(counted.count == 1)
        }
    }

    /// Such a hash belongs to another signer key, and no password would ever match it.
    @Test func `A hash of Firebase that is not as long as the signer key is rejected`() async throws {
        try await withServer { server in
            let rows = [32, 63, 64, 65].map { count in
                ImportUser(
                    uid: Text("u\(count)"), passwordHash: Secret([UInt8](repeating: 9, count: count)), salt: [1],
                    hashSpec: "theirs")
            }
            let answer = try Self.importAll(server, rows, Self.specs)
            #expect(answer.createdCount == 1)
            #expect(answer.rejections.map(\.uid) == ["u32", "u63", "u65"])
            #expect(answer.rejections.allSatisfy { $0.reason == "INVALID_PASSWORD_HASH" })
        }
    }

    @Test func `A spec that cannot be, or a factor, is refused`() async throws {
        try await withServer { server in
            let named = { (name: String) in
                NamedHashSpec(name: Text(name), spec: PasswordHashSpec(algorithm: .bcrypt(BcryptSpec())))
            }
            let wrong = [
                [NamedHashSpec(name: "a")], [named("")], [named(String(repeating: "x", count: 65))],
                [named("a"), named("a")], (0..<1_001).map { named("s\($0)") },
            ]
            for specs in wrong {
                expectRefusal("INVALID_HASH_SPEC") { _ = try Self.importAll(server, [], specs) }
            }
            #expect(try Self.importAll(server, [], (0..<1_000).map { named("s\($0)") }).checkpoint == 0)
            func phone(_ id: Text = "", number: Int = 2) -> ImportSecondFactor {
                let phoneNumber = Text("+1415555010\(number)")
                return ImportSecondFactor(factor: SecondFactor(factorID: id, kind: .phone, phoneNumber: phoneNumber))
            }
            func totp(_ count: Int) -> ImportSecondFactor {
                ImportSecondFactor(
                    factor: SecondFactor(kind: .totp), totpSecret: Secret([UInt8](repeating: 1, count: count)))
            }
            let cases: [([ImportSecondFactor], Text)] = [
                ([ImportSecondFactor()], "INVALID_SECOND_FACTOR"),
                ([ImportSecondFactor(factor: SecondFactor(kind: .phone))], "INVALID_SECOND_FACTOR"),
                ([ImportSecondFactor(factor: SecondFactor(kind: .phone, phoneNumber: "1"))], "INVALID_PHONE_NUMBER"),
                ([totp(9)], "INVALID_SECOND_FACTOR"), ([totp(65)], "INVALID_SECOND_FACTOR"),
                ([phone("x"), phone("x")], "INVALID_SECOND_FACTOR"),
                // Whoever removes the factor of a stolen phone means the phone.
                ([phone("x"), phone("y")], "INVALID_SECOND_FACTOR"),
                ((0..<6).map { phone(number: $0) }, "INVALID_SECOND_FACTOR"),
                ((0..<5).map { phone(number: $0) }, ""), ([totp(10), totp(64)], ""),
            ]
            let rows = cases.enumerated().map { ImportUser(uid: Text("u\($0)"), secondFactors: $1.0) }
            let answer = try Self.importAll(server, rows, [])
            #expect(answer.rejections.map(\.reason) == cases.map(\.1).filter { !$0.isEmpty })
        }
    }
}
