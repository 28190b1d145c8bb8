import Base
import Identity
import Messages
import Store
import TestSupport
import Testing
import Wire

@testable import Service

/// A tenant's admin changes API keys without end. The methods of keys are about no tenant; what they store belongs to
/// the tenant of their caller.
@Suite struct KeyChangeAttackTests {
    /// How full the tenant is.
    enum Fullness: CaseIterable, Sendable {
        case hasRoom
        /// Beyond the tenant's bytes, and within the reserve of changes that end something.
        case isFull
        case hasSpentItsReserve

        func admits(_ method: String) -> Bool {
            switch self {
            case .hasRoom: true
            case .isFull: method != "postern.v1.Project/CreateApiKey"
            case .hasSpentItsReserve: method == "postern.v1.Project/RevokeApiKey"
            }
        }
    }

    /// The methods about no tenant that change something, and that a tenant's admin may call.
    private static func methods(_ server: TestServer) -> [String] {
        server.instance.router.registry.all.map(\.descriptor)
            .filter { $0.mutation && $0.tenant == .unspecified && $0.role.rawValue <= Role.tenantAdmin.rawValue }
            .map(\.fullName)
    }

    private static func create(_ client: RawClient, _ role: Role, of tenantID: Text?) throws -> Text {
        let made: ProjectCreateApiKeyResponse = try client.call(
            "postern.v1.Project/CreateApiKey",
            ProjectCreateApiKeyRequest(
                role: role, scope: Scope(tenants: tenantID.map { .tenantID($0) } ?? .all(true))))
        return made.apiKey?.apiKeyID ?? .empty
    }

    private static func request(_ method: String, _ keyID: Text, of tenantID: Text) -> (any Message)? {
        switch method {
        case "postern.v1.Project/CreateApiKey":
            ProjectCreateApiKeyRequest(role: .app, scope: Scope(tenants: .tenantID(tenantID)))
        case "postern.v1.Project/UpdateApiKey":
            ProjectUpdateApiKeyRequest(
                apiKeyID: keyID, updateMask: ProtobufFieldMask(paths: ["display_name"]),
                displayName: Text(String(repeating: "x", count: 256)))
        case "postern.v1.Project/RotateApiKey": ProjectRotateApiKeyRequest(apiKeyID: keyID)
        case "postern.v1.Project/RevokeApiKey": ProjectRevokeApiKeyRequest(apiKeyID: keyID)
        default: nil
        }
    }

    /// Changes a key, by any of the methods, under the idempotency key `name`.
    private static func change(
        _ client: RawClient, _ method: String, _ keyID: Text, of tenantID: Text, name: Text
    ) throws {
        guard let request = Self.request(method, keyID, of: tenantID) else {
            Issue.record("\(method) has no request in this test")
            return
        }
        _ = try client.call(
            method, request, returning: AnyMessage.self,
            metadata: [OutgoingMetadata.Entry(key: "idempotency-key", value: name)])
    }

    private static func bytes(_ server: TestServer, _ tenantID: Text) throws -> Int64 {
        try server.project.store.read { try $0.usage(ofTenant: tenantID).byteCount }
    }

    @Test func `A change of a key is stored in its admin's tenant, and nothing of it in the default pool`() async throws
    {
        try await withServer { server in
            try server.makeTenant("acme")
            let project = try server.connect()
            let admin = try server.client(as: .tenantAdmin, of: "acme")
            for method in Self.methods(server) {
                let keyID = try Self.create(project, .app, of: "acme")
                let (pool, own) = (try Self.bytes(server, ""), try Self.bytes(server, "acme"))
                try Self.change(admin, method, keyID, of: "acme", name: Text(method))
                let (poolAfter, ownAfter) = (try Self.bytes(server, ""), try Self.bytes(server, "acme"))
                #expect(poolAfter == pool && ownAfter > own, "\(method) \(poolAfter - pool)")
            }
            // A deleted tenant's records stay until they expire.
            let _: TenantsDeleteResponse = try project.call(
                "postern.v1.Tenants/Delete", TenantsDeleteRequest(tenantID: "acme"))
            let kept = try server.project.store.read { try $0.count(Tables.idempotency) }
            #expect(kept == Self.methods(server).count)
            server.clock.advance(by: .hours(24) + .seconds(1))
            await server.project.sweep()
            let left = try server.project.store.read { try $0.count(Tables.idempotency) }
            #expect(left == 0)
        }
    }

    @Test(arguments: Fullness.allCases)
    func `A full tenant's admin revokes keys, and changes none once the reserve is spent`(
        _ fullness: Fullness
    ) async throws {
        try await withServer(configure: { configuration in
            if fullness == .hasSpentItsReserve { configuration.limits.tenantReserveMin = 1 }
        }) { server in
            for tenantID in ["acme", "beta"] as [Text] { try server.makeTenant(tenantID) }
            let project = try server.connect()
            let admin = try server.client(as: .tenantAdmin, of: "acme")
            let other = try server.client(as: .tenantAdmin, of: "beta")
            if fullness != .hasRoom {
                try server.updateTenant("acme", ["quotas.stored_bytes"]) { $0.quotas = TenantQuotas(storedBytes: 1) }
            }
            for method in Self.methods(server) {
                let name = Text(method)
                let keyID = try Self.create(project, .app, of: "acme")
                let before = try Self.bytes(server, "acme")
                let found = failure { try Self.change(admin, method, keyID, of: "acme", name: name) }
                let isAdmitted = fullness.admits(method)
                #expect(found.reason == (isAdmitted ? "" : "QUOTA_EXCEEDED"), "\(method)")
                if !isAdmitted {
                    let after = try Self.bytes(server, "acme")
                    #expect(found.metadata("quota") == "tenant_stored_bytes" && after == before)
                }
                // Neither another tenant nor a project-admin is held up.
                let otherID = try Self.create(project, .app, of: "beta")
                try Self.change(other, method, otherID, of: "beta", name: name)
                let next = try Self.create(project, .app, of: "acme")
                try Self.change(project, method, next, of: "acme", name: name)
            }
            // The refusals are the tenant's.
            let refused = Self.methods(server).count { !fullness.admits($0) }
            let usage = try server.usage(of: "acme")["tenant_stored_bytes"]?.refused
            let pool = try server.usage(of: "")["tenant_stored_bytes"]?.refused
            #expect(usage == Int64(refused) && pool == 0)
        }
    }

    @Test func `A key that was revoked is revoked again without end, and nothing is stored`() async throws {
        try await withServer { server in
            try server.makeTenant("acme")
            let admin = try server.client(as: .tenantAdmin, of: "acme")
            let keyID = try Self.create(admin, .app, of: "acme")
            func revoke(_ name: Text) throws {
                try Self.change(admin, "postern.v1.Project/RevokeApiKey", keyID, of: "acme", name: name)
            }
            try revoke("first")
            let before = try Self.bytes(server, "acme")
            for number in 0..<10 { try revoke(Text("again-\(number)")) }
            try revoke("first")
            let after = try Self.bytes(server, "acme")
            #expect(after == before)
        }
    }

    // MARK: Keys with more rights

    private static func rotate(_ client: RawClient, _ id: Text) throws {
        let _: ProjectRotateApiKeyResponse = try client.call(
            "postern.v1.Project/RotateApiKey", ProjectRotateApiKeyRequest(apiKeyID: id))
    }

    private static func update(
        _ client: RawClient, _ id: Text, _ path: Text, expiresAt: Int64 = 0, addresses: [Text] = []
    ) throws {
        let _: ProjectUpdateApiKeyResponse = try client.call(
            "postern.v1.Project/UpdateApiKey",
            ProjectUpdateApiKeyRequest(
                apiKeyID: id, updateMask: ProtobufFieldMask(paths: [path]), expiresAtMicros: expiresAt,
                allowedAddresses: addresses))
    }

    private static func ownID(_ client: RawClient) throws -> Text {
        let who: ProjectWhoAmIResponse = try client.call("postern.v1.Project/WhoAmI", ProjectWhoAmIRequest())
        return who.caller
    }

    @Test func `A limited key takes over no key with higher quotas`() async throws {
        let (three, million) = (CallerQuotas(mutationsPerSecond: 3), CallerQuotas(writtenBytesPerHour: 1_000_000))
        let fiveSMS = CallerQuotas(smsPerHour: 5)
        let cases: [(own: CallerQuotas?, other: CallerQuotas?, isAllowed: Bool)] = [
            (nil, nil, true), (three, nil, false), (three, three, true),
            (three, CallerQuotas(mutationsPerSecond: 4), false), (three, CallerQuotas(mutationsPerSecond: 2), true),
            (million, nil, false), (million, million, true), (fiveSMS, nil, false), (fiveSMS, fiveSMS, true),
            // An admin's default is 2,000 changes a second.
            (nil, CallerQuotas(mutationsPerSecond: 2_000), true), (nil, CallerQuotas(mutationsPerSecond: 2_001), false),
        ]
        try await withServer { server in
            try server.makeTenant("acme")
            let project = try server.connect()
            let end = (server.project.clock.now() + .hours(1)).microseconds
            for (number, (own, other, isAllowed)) in cases.enumerated() {
                let admin = try server.client(as: .tenantAdmin, of: "acme", quotas: own)
                let made: ProjectCreateApiKeyResponse = try project.call(
                    "postern.v1.Project/CreateApiKey",
                    ProjectCreateApiKeyRequest(
                        role: .app, scope: Scope(tenants: .tenantID("acme")), quotas: other, expiresAtMicros: end,
                        allowedAddresses: ["127.0.0.1"]))
                let id = try #require(made.apiKey).apiKeyID
                let reasons = [
                    failure { try Self.rotate(admin, id) }.reason,
                    failure { try Self.update(admin, id, "expires_at_micros", expiresAt: end + 1) }.reason,
                    failure { try Self.update(admin, id, "allowed_addresses", addresses: ["127.0.0.0/8"]) }.reason,
                ]
                let expected = isAllowed ? "" : "INSUFFICIENT_PERMISSION"
                #expect(reasons == Array(repeating: expected, count: 3), "case \(number)")
                // The admin may revoke the key, so it may restrict the key.
                try Self.update(admin, id, "expires_at_micros", expiresAt: end - 1)
                try Self.update(admin, id, "allowed_addresses", addresses: ["127.0.0.1"])
                // A limited key renews the keys that it makes, and itself.
                try Self.rotate(admin, try Self.create(admin, .app, of: "acme"))
                try Self.rotate(admin, try Self.ownID(admin))
            }
        }
    }

    @Test func `An admin of all tenants makes keys for one tenant each, and no more than the tenant may have`()
        async throws
    {
        try await withServer(configure: { $0.limits.administration.apiKeysPerTenantMax = 3 }) { server in
            try server.makeTenant("acme")
            let admin = try server.client(as: .tenantAdmin, of: nil)
            for role in [Role.verifier, .app, .tenantAdmin] {
                expectRefusal("INSUFFICIENT_PERMISSION") { _ = try Self.create(admin, role, of: nil) }
                _ = try Self.create(admin, role, of: "acme")
            }
            expectRefusal("TOO_MANY_API_KEYS") { _ = try Self.create(admin, .app, of: "acme") }
            _ = try Self.create(admin, .app, of: "")
            // A project-admin makes keys for all tenants, and their holder may rotate them.
            try Self.rotate(admin, try Self.create(server.connect(), .app, of: nil))
            try Self.rotate(admin, try Self.ownID(admin))
        }
    }
}
