import Base
import Identity
import Messages
import Service
import Store
import TestSupport
import Testing

/// A credential with quotas makes or rotates keys, to have the quotas several times.
@Suite struct QuotaOwnerAttackTests {
    private typealias Made = (key: ApiKey, client: RawClient)

    private static func client(_ server: TestServer, _ secret: Secret) throws -> RawClient {
        let client = try server.connect(authenticated: false)
        client.apiKey = secret
        return client
    }

    private static func make(_ server: TestServer, _ role: Role, by maker: RawClient) throws -> Made {
        let made: ProjectCreateApiKeyResponse = try maker.call(
            "postern.v1.Project/CreateApiKey",
            ProjectCreateApiKeyRequest(role: role, scope: Scope(tenants: .tenantID("acme"))))
        return (try #require(made.apiKey), try client(server, made.secretKey))
    }

    private static func limited(_ server: TestServer, _ role: Role = .tenantAdmin) throws -> RawClient {
        try server.client(as: role, of: "acme", quotas: CallerQuotas(mutationsPerSecond: 5))
    }

    private static func id(of client: RawClient) throws -> Text {
        let who: ProjectWhoAmIResponse = try client.call("postern.v1.Project/WhoAmI", ProjectWhoAmIRequest())
        return who.caller
    }

    private static func rotate(_ server: TestServer, _ id: Text, by client: RawClient) throws -> Made {
        let rotated: ProjectRotateApiKeyResponse = try client.call(
            "postern.v1.Project/RotateApiKey", ProjectRotateApiKeyRequest(apiKeyID: id))
        return (try #require(rotated.apiKey), try Self.client(server, rotated.secretKey))
    }

    @discardableResult
    private static func setRate(_ server: TestServer, _ id: Text, _ rate: Int64) throws -> ApiKey {
        let changed: ProjectUpdateApiKeyResponse = try server.connect().call(
            "postern.v1.Project/UpdateApiKey",
            ProjectUpdateApiKeyRequest(
                apiKeyID: id, updateMask: ProtobufFieldMask(paths: ["quotas.mutations_per_second"]),
                quotas: CallerQuotas(mutationsPerSecond: rate)))
        return try #require(changed.apiKey)
    }

    /// How many of 60 changes pass, which the clients make in turn. The clock stands still. Each mail has another
    /// address.
    private static func passed(_ clients: RawClient...) -> Int {
        (0..<60).count { number in
            let address = UInt64.random(in: .min ... .max)
            let refusal = failure {
                let _: AccountsSendOobCodeResponse = try clients[number % clients.count].call(
                    "postern.v1.Accounts/SendOobCode",
                    AccountsSendOobCodeRequest(
                        tenantID: "acme", requestType: .emailSignin, email: Text("u\(address)@example.com")))
            }
            #expect(refusal.reason.isEmpty || refusal.metadata("quota") == "caller_mutations")
            return refusal.reason.isEmpty
        }
    }

    @Test func `The keys that a limited key makes, and those that they make, have its quota together`() async throws {
        try await QuotaAttackTests.withAcme { server in
            let limited = try Self.limited(server)
            let child = try Self.make(server, .tenantAdmin, by: limited)
            let grandchild = try Self.make(server, .app, by: child.client)
            let owner = try Self.id(of: limited)
            #expect(child.key.quotaOwnerID == owner && grandchild.key.quotaOwnerID == owner)
            // Four seconds' worth are 20 changes, and making the two keys took two of them.
            #expect(Self.passed(grandchild.client, child.client, limited) == 18)
            // What an unlimited admin makes has no owner.
            let free = try Self.make(server, .app, by: server.client(as: .tenantAdmin, of: "acme"))
            #expect(free.key.quotaOwnerID.isEmpty)
        }
    }

    @Test func `A changed quota of the owner binds the other keys at once, also when the owner is revoked`()
        async throws
    {
        try await QuotaAttackTests.withAcme { server in
            let limited = try Self.limited(server)
            let owner = try Self.id(of: limited)
            let (first, second) = (
                try Self.make(server, .app, by: limited), try Self.make(server, .app, by: limited)
            )
            _ = Self.passed(first.client)
            try Self.setRate(server, owner, 1)
            server.clock.advance(by: .minutes(1))
            #expect(Self.passed(first.client, second.client) == 4)
            try Self.setRate(server, owner, 7)
            server.clock.advance(by: .minutes(1))
            // 20 of their own each, and 28 of the owner.
            #expect(Self.passed(first.client, second.client) == 28)
            let _: ProjectRevokeApiKeyResponse = try server.connect().call(
                "postern.v1.Project/RevokeApiKey", ProjectRevokeApiKeyRequest(apiKeyID: owner))
            server.clock.advance(by: .minutes(1))
            #expect(Self.passed(first.client, second.client) == 28)
            // Without the owner's record, the quotas hold that the owner had when it made the keys.
            _ = try await server.project.store.write { try $0.delete(Tables.apiKeys, TextKey(owner)) }
            server.clock.advance(by: .minutes(1))
            #expect(Self.passed(first.client, second.client) == 20)
        }
    }

    @Test func `A project-admin who sets a key's quotas takes the owner away`() async throws {
        try await QuotaAttackTests.withAcme { server in
            let limited = try Self.limited(server)
            let made = try Self.make(server, .app, by: limited)
            #expect(Self.passed(limited) == 19)
            #expect(Self.passed(made.client) == 0)
            let changed = try Self.setRate(server, made.key.apiKeyID, 5)
            #expect(changed.quotaOwnerID.isEmpty && changed.quotas == made.key.quotas)
            #expect(Self.passed(made.client) == 20)
        }
    }

    @Test func `A key that a limited key rotates is charged to it, its own rotation changes nothing`() async throws {
        try await QuotaAttackTests.withAcme { server in
            let limited = try Self.limited(server)
            let other = try Self.limited(server, .app)
            let rotated = try Self.rotate(server, try Self.id(of: other), by: limited)
            let owner = try Self.id(of: limited)
            #expect(rotated.key.quotaOwnerID == owner)
            // The rotation took one.
            #expect(Self.passed(rotated.client, limited) == 19)
            server.clock.advance(by: .minutes(1))
            let own = try Self.rotate(server, owner, by: limited)
            #expect(own.key.quotaOwnerID.isEmpty)
            // A key that has an owner does not become the owner of it.
            let child = try Self.make(server, .tenantAdmin, by: own.client)
            let again = try Self.rotate(server, owner, by: child.client)
            #expect(child.key.quotaOwnerID == owner && again.key.quotaOwnerID.isEmpty)
            // A project-admin's rotation leaves the owner.
            let left = try Self.rotate(server, rotated.key.apiKeyID, by: server.connect())
            #expect(left.key.quotaOwnerID == owner)
        }
    }

    @Test func `SMS that the made keys send are charged to the owner`() async throws {
        try await withServer { server in
            try server.makeTenant("acme", ["enable_phone_signin"]) { $0.enablePhoneSignin = true }
            let limited = try server.client(as: .tenantAdmin, of: "acme", quotas: CallerQuotas(smsPerHour: 3))
            let made = try (0..<2).map { _ in try Self.make(server, .app, by: limited).client }
            let answers = (0..<6).map { number in
                failure {
                    let _: AccountsSendVerificationCodeResponse = try made[number % 2].call(
                        "postern.v1.Accounts/SendVerificationCode",
                        AccountsSendVerificationCodeRequest(
                            tenantID: "acme", phoneNumber: Text("+1415555\(1_000 + number)")))
                }
            }
            #expect(answers.map(\.reason.isEmpty) == [true, true, true, false, false, false])
            #expect(answers.last?.metadata("quota") == "caller_sms")
        }
    }

    @Test func `The record of a revoked owner is not deleted to make room while it binds a key`() async throws {
        try await withServer(configure: { $0.limits.administration.apiKeysPerTenantMax = 3 }) { server in
            try server.makeTenant("acme")
            let limited = try Self.limited(server)
            let owner = try Self.id(of: limited)
            let admin = try Self.make(server, .tenantAdmin, by: limited)
            let spare = try Self.make(server, .app, by: limited)
            for id in [owner, spare.key.apiKeyID] {
                let _: ProjectRevokeApiKeyResponse = try server.connect().call(
                    "postern.v1.Project/RevokeApiKey", ProjectRevokeApiKeyRequest(apiKeyID: id))
                server.clock.advance(by: .seconds(1))
            }
            _ = try Self.make(server, .app, by: admin.client)
            let page: ProjectListApiKeysResponse = try admin.client.call(
                "postern.v1.Project/ListApiKeys", ProjectListApiKeysRequest())
            let ids = page.apiKeys.map(\.apiKeyID)
            #expect(ids.contains(owner) && !ids.contains(spare.key.apiKeyID) && ids.count == 3)
        }
    }
}
