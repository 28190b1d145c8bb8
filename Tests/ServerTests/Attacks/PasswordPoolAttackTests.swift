import Base
import Crypto
import Identity
import Messages
import Reactor
import Store
import TestSupport
import Testing
import Wire

@testable import Service

/// A tenant imports costly password hashes to keep the password workers, or the memory, for itself.
@Suite struct PasswordPoolAttackTests {
    private static func makeTenant(_ client: RawClient, _ id: Text, allowsCostlyHashes: Bool) throws {
        let _: TenantsCreateResponse = try client.call(
            "postern.v1.Tenants/Create",
            TenantsCreateRequest(
                tenantID: id, tenant: Messages.Tenant(allowCostlyHashes: allowsCostlyHashes),
                updateMask: ProtobufFieldMask(paths: ["allow_costly_hashes"])))
    }

    /// A hash that no password of these tests has.
    private static func argon2id(memoryKiB: Int, passes: Int) -> Secret {
        let digest = String(repeating: "A", count: 43)
        return Secret([UInt8]("$argon2id$v=19$m=\(memoryKiB),t=\(passes),p=1$c29tZXNhbHRzb21lc2FsdA$\(digest)".utf8))
    }

    private static func bcrypt(_ cost: String) -> Secret {
        Secret([UInt8]("$2b$\(cost)$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW".utf8))
    }

    private static func importing(
        _ client: RawClient, _ users: [ImportUser], _ spec: PasswordHashSpec.Algorithm, tenantID: Text
    ) throws -> UsersImportResponse {
        try ImportTests.importing(client, users, spec: spec, tenantID: tenantID)
    }

    /// Sends a sign-in and waits for nothing.
    private static func sendSignIn(_ client: RawClient, _ email: Text, tenantID: Text) throws {
        try client.send(
            client.request(
                "postern.v1.Accounts/SignInWithPassword",
                AccountsSignInWithPasswordRequest(tenantID: tenantID, email: email, password: Secret("a guess")),
                stream: client.nextStream(), timeoutNanoseconds: 30_000_000_000))
    }

    /// Forty users with hashes of 256 MiB and four passes, and as many sign-ins at once, half of them of addresses that
    /// nobody has. The other tenant's sign-ins wait for no more than one of these on each worker.
    @Test func dearHashesDelayTheirOwnTenantOnly() async throws {
        try await withServer(configure: { $0.passwordWorkers = 2 }) { server in
            let client = try IdentityClient(server)
            try Self.makeTenant(client.client, "mallory", allowsCostlyHashes: true)
            let users = (0..<40).map { number in
                ImportUser(
                    uid: Text("u\(number)"), email: Text("u\(number)@mallory.test"),
                    passwordHash: Self.argon2id(memoryKiB: 262_144, passes: 4))
            }
            let imported = try Self.importing(client.client, users, .argon2id(Argon2idSpec()), tenantID: "mallory")
            #expect(imported.createdCount == 40)
            _ = try client.signUp("ada@example.com")
            let pool = server.instance.passwordPool
            let attacker = try server.connect()
            for number in 0..<40 {
                let email = number % 2 == 0 ? Text("u\(number)@mallory.test") : Text("nobody\(number)@mallory.test")
                try Self.sendSignIn(attacker, email, tenantID: "mallory")
            }
            // The queue of a tenant holds 32; the others are refused at once.
            try await until("all sign-ins have arrived") { Self.arrivedCount(pool.counts) >= 40 + 1 }
            #expect(pool.counts.running <= 1)
            #expect(pool.counts.queued >= 20)
            for _ in 0..<10 { _ = try client.signIn("ada@example.com") }
            // If these sign-ins had waited for the attacker's, none of the attacker's would be left.
            #expect(pool.counts.queued >= 10)
            // One hash of the attacker's runs at a time, and one of the other tenant's beside it.
            #expect(pool.counts.memoryPeakByteCount < 257 << 20)
            attacker.close()
            try await until("no sign-in waits") { pool.counts.queued == 0 }
            #expect(pool.counts.cancelled > 0)
        }
    }

    /// The hashes that were asked for so far, refused ones too; the sign-up's is the first.
    private static func arrivedCount(_ counts: WorkerPoolCounts) -> Int {
        counts.queued + counts.running + Int(counts.done + counts.refused)
    }

    @Test(
        arguments: [
            (131_072, 4, true), (131_073, 1, false), (83_333, 10, true), (83_334, 10, false), (262_144, 10, false),
            (19_456, 2, true), (65_536, 3, true),
        ])
    func imports(ofArgon2id memoryKiB: Int, passes: Int, areTaken: Bool) async throws {
        try await expectImport(Self.argon2id(memoryKiB: memoryKiB, passes: passes), .argon2id(Argon2idSpec()), areTaken)
    }

    @Test(arguments: [("04", true), ("12", true), ("13", false), ("14", false)])
    func imports(ofBcrypt cost: String, areTaken: Bool) async throws {
        try await expectImport(Self.bcrypt(cost), .bcrypt(BcryptSpec()), areTaken)
    }

    /// (function, bytes of the key, rounds). A key that is longer than the function's digest needs every round twice.
    @Test(
        arguments: [
            (.sha256, 32, 625_000, true), (.sha256, 32, 625_001, false), (.sha1, 20, 625_000, true),
            (.sha1, 20, 625_001, false), (.sha1, 32, 312_500, true), (.sha1, 32, 312_501, false),
            (.sha512, 64, 500_000, true), (.sha512, 64, 500_001, false),
        ] as [(PasswordHashFunction, Int, Int32, Bool)])
    func imports(
        ofPBKDF2 function: PasswordHashFunction, keyByteCount: Int, rounds: Int32, areTaken: Bool
    ) async throws {
        let hash = Secret([UInt8](repeating: 1, count: keyByteCount))
        try await expectImport(hash, .pbkdf2(Pbkdf2Spec(function: function, rounds: rounds)), areTaken)
    }

    private func expectImport(_ hash: Secret, _ spec: PasswordHashSpec.Algorithm, _ isTaken: Bool) async throws {
        try await withServer { server in
            let client = try server.connect()
            try Self.makeTenant(client, "usual", allowsCostlyHashes: false)
            try Self.makeTenant(client, "allowed", allowsCostlyHashes: true)
            let user = ImportUser(uid: "u", email: "u@x.com", passwordHash: hash)
            let usual = try Self.importing(client, [user], spec, tenantID: "usual")
            #expect(usual.rejections.map(\.reason) == (isTaken ? [] : ["PASSWORD_HASH_TOO_COSTLY"]))
            #expect(server.project.passwords.refusedImports.value == (isTaken ? 0 : 1))
            #expect(try Self.importing(client, [user], spec, tenantID: "allowed").createdCount == 1)
        }
    }

    @Test func whoIsInSignsInAndIsRehashed() async throws {
        try await withServer(configure: { $0.limits.importedHashTimeMax = .milliseconds(1) }) { server in
            let client = try IdentityClient(server)
            try client.setTenant(["allow_costly_hashes"]) { $0.allowCostlyHashes = true }
            // Openwall's vector for "U*U", at cost 5.
            let hash = Secret("$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW")
            func importing(_ uid: Text) throws -> UsersImportResponse {
                try Self.importing(
                    client.client, [ImportUser(uid: uid, email: Text("\(uid)@x.com"), passwordHash: hash)],
                    .bcrypt(BcryptSpec()), tenantID: "")
            }
            #expect(try importing("old").createdCount == 1)
            try client.setTenant(["allow_costly_hashes"]) { $0.allowCostlyHashes = false }
            #expect(try importing("new").rejections.map(\.reason) == ["PASSWORD_HASH_TOO_COSTLY"])
            #expect(try client.signIn("old@x.com", password: "U*U").user?.uid == "old")
            let stored = try server.project.store.read { try $0.get(Tables.users, UserKey(.empty, "old")) }
            #expect(stored?.passwordHash.string.hasPrefix("$argon2id$") == true)
        }
    }

    @Test func aTenantAdminCannotAllowCostlyHashes() async throws {
        try await withServer { server in
            let client = try server.connect()
            try Self.makeTenant(client, "acme", allowsCostlyHashes: false)
            let made: ProjectCreateApiKeyResponse = try client.call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(role: .tenantAdmin, scope: Scope(tenants: .tenantID("acme"))))
            let admin = try server.connect()
            admin.apiKey = made.secretKey
            for isAllowed in [true, false] {
                expectRefusal("INSUFFICIENT_PERMISSION") {
                    let _: TenantsUpdateResponse = try admin.call(
                        "postern.v1.Tenants/Update",
                        TenantsUpdateRequest(
                            tenantID: "acme", tenant: Messages.Tenant(allowCostlyHashes: isAllowed),
                            updateMask: ProtobufFieldMask(paths: ["allow_costly_hashes"])))
                }
            }
        }
    }
}
