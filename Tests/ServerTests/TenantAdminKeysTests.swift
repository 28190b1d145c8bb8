import Base
import Identity
import Messages
import Service
import TestSupport
import Testing

/// API keys that the admins of a tenant make, their use, and what a credential may call.
@Suite struct TenantAdminKeysTests {
    private static func request(
        _ role: Role = .tenantAdmin, tenant: Text? = "acme",
        _ fill: (inout ProjectCreateApiKeyRequest) -> Void = { _ in }
    ) -> ProjectCreateApiKeyRequest {
        var request = ProjectCreateApiKeyRequest(
            role: role, scope: Scope(tenants: tenant.map { .tenantID($0) } ?? .all(true)))
        fill(&request)
        return request
    }

    private static func make(
        _ client: RawClient, _ request: ProjectCreateApiKeyRequest
    ) throws -> (key: ApiKey, secret: Secret) {
        let made: ProjectCreateApiKeyResponse = try client.call("postern.v1.Project/CreateApiKey", request)
        return (made.apiKey ?? ApiKey(), made.secretKey)
    }

    /// A client with a key that the project's admin made.
    private static func client(_ server: TestServer, _ request: ProjectCreateApiKeyRequest) throws -> RawClient {
        let client = try server.connect(authenticated: false)
        client.apiKey = try make(server.connect(), request).secret
        return client
    }

    private static func createTenants(_ server: TestServer, _ ids: Text...) throws {
        for id in ids {
            let _: TenantsCreateResponse = try server.connect().call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: id))
        }
    }

    private static func list(_ client: RawClient) throws -> [ApiKey] {
        let page: ProjectListApiKeysResponse = try client.call(
            "postern.v1.Project/ListApiKeys", ProjectListApiKeysRequest())
        return page.apiKeys
    }

    private static func revoke(_ client: RawClient, _ id: Text) throws {
        let _: ProjectRevokeApiKeyResponse = try client.call(
            "postern.v1.Project/RevokeApiKey", ProjectRevokeApiKeyRequest(apiKeyID: id))
    }

    private static func rotate(_ client: RawClient, _ id: Text) throws {
        let _: ProjectRotateApiKeyResponse = try client.call(
            "postern.v1.Project/RotateApiKey", ProjectRotateApiKeyRequest(apiKeyID: id))
    }

    @Test func whatALimitedKeyMakesIsLimitedAsItIs() async throws {
        try await withServer { server in
            try Self.createTenants(server, "acme")
            let quotas = CallerQuotas(mutationsPerSecond: 3)
            let admin = try Self.client(server, Self.request { $0.quotas = quotas })
            #expect(try Self.make(admin, Self.request(.app)).key.quotas == quotas)
            #expect(try Self.list(admin).allSatisfy { $0.quotas == quotas })
        }
    }

    @Test func oneQuotaIsSetAndTheOthersStay() async throws {
        try await withServer { server in
            let client = try server.connect()
            let made = try Self.make(client, Self.request(.app, tenant: nil) { $0.quotas = Self.quotas(1, 2, 3) }).key
            func update(_ paths: [Text], _ quotas: CallerQuotas?) throws -> CallerQuotas? {
                let request = ProjectUpdateApiKeyRequest(
                    apiKeyID: made.apiKeyID, updateMask: ProtobufFieldMask(paths: paths), quotas: quotas)
                let answer: ProjectUpdateApiKeyResponse = try client.call("postern.v1.Project/UpdateApiKey", request)
                return answer.apiKey?.quotas
            }
            // What the mask does not name is not looked at, even if it could not be set.
            #expect(try update(["quotas.sms_per_hour"], Self.quotas(9, -1, 7)) == Self.quotas(1, 2, 7))
            #expect(try update(["quotas.mutations_per_second"], nil) == Self.quotas(0, 2, 7))
            #expect(try update(["quotas.sms_per_hour", "quotas"], Self.quotas(4, 0, 0)) == Self.quotas(4, 0, 0))
            expectRefusal("INVALID_QUOTA") { _ = try update(["quotas.written_bytes_per_hour"], Self.quotas(0, -1, 0)) }
            expectRefusal("INVALID_UPDATE_MASK") { _ = try update(["quotas.stored_bytes"], nil) }
            #expect(try Self.list(client).contains { $0.quotas == Self.quotas(4, 0, 0) })
        }
    }

    private static func quotas(_ mutations: Int64, _ bytes: Int64, _ sms: Int64) -> CallerQuotas {
        CallerQuotas(mutationsPerSecond: mutations, writtenBytesPerHour: bytes, smsPerHour: sms)
    }

    @Test func aTenantsAdminMakesSeesAndRevokesTheKeysOfItsTenant() async throws {
        try await withServer { server in
            try Self.createTenants(server, "acme", "beta")
            let admin = try Self.client(server, Self.request())
            let other = try Self.make(server.connect(), Self.request(tenant: "beta")).key
            let (key, secret) = try Self.make(admin, Self.request(.app))
            let app = try server.connect(authenticated: false)
            app.apiKey = secret
            let who: ProjectWhoAmIResponse = try app.call("postern.v1.Project/WhoAmI", ProjectWhoAmIRequest())
            #expect(who.role == .app && who.scope?.tenants == .tenantID("acme"))
            let listed = try Self.list(admin)
            #expect(listed.contains { $0.apiKeyID == key.apiKeyID })
            #expect(listed.allSatisfy { $0.scope?.tenants == .tenantID("acme") })
            expectRefusal("API_KEY_NOT_FOUND") { try Self.revoke(admin, other.apiKeyID) }
            expectRefusal("API_KEY_NOT_FOUND") { try Self.rotate(admin, other.apiKeyID) }
            try Self.rotate(admin, key.apiKeyID)
            try Self.revoke(admin, key.apiKeyID)
            expectRefusal("CALLER_UNAUTHENTICATED") {
                let _: ProjectWhoAmIResponse = try app.call("postern.v1.Project/WhoAmI", ProjectWhoAmIRequest())
            }
            // The events are in the tenant's own log.
            let events: AuditListEventsResponse = try admin.call(
                "postern.v1.Audit/ListEvents",
                AuditListEventsRequest(filter: EventFilter(kinds: [.apiKeyCreated, .apiKeyRotated, .apiKeyRevoked])))
            #expect(events.events.map(\.kind) == [.apiKeyRevoked, .apiKeyRotated, .apiKeyCreated])
            #expect(events.events.last?.detail == Text("\(key.apiKeyID):role=app,scope=acme"))
        }
    }

    @Test func noKeyMayMoreThanWhoeverMakesIt() async throws {
        try await withServer { server in
            try Self.createTenants(server, "acme", "beta")
            let plain = try Self.client(server, Self.request())
            let wrong: [(String, ProjectCreateApiKeyRequest)] = [
                ("another tenant", Self.request(.app, tenant: "beta")),
                ("all tenants", Self.request(.app, tenant: nil)),
                ("the role", Self.request(.projectAdmin, tenant: nil)), ("the default pool", Self.request(tenant: "")),
                ("addresses", Self.request { $0.trustedEndUserIP = true }),
                ("hashes", Self.request { $0.exportPasswordHashes = true }),
                ("quotas", Self.request { $0.quotas = CallerQuotas(mutationsPerSecond: 1) }),
            ]
            for (what, request) in wrong {
                #expect(failure { _ = try Self.make(plain, request) }.reason == "INSUFFICIENT_PERMISSION", "\(what)")
            }
            let app = try Self.client(server, Self.request(.app))
            expectRefusal("INSUFFICIENT_PERMISSION") { _ = try Self.make(app, Self.request(.app)) }
        }
    }

    @Test func aKeyThatEndsOrIsBoundToNetworksHandsThatOn() async throws {
        try await withServer { server in
            try Self.createTenants(server, "acme")
            let end = (server.project.clock.now() + .hours(1)).microseconds
            let bound = try Self.client(
                server,
                Self.request {
                    $0.expiresAtMicros = end
                    $0.allowedAddresses = ["127.0.0.0/8"]
                    $0.trustedEndUserIP = true
                })
            func child(_ expiresAt: Int64, _ addresses: [Text]) -> ProjectCreateApiKeyRequest {
                Self.request(.app) {
                    $0.expiresAtMicros = expiresAt
                    $0.allowedAddresses = addresses
                    $0.trustedEndUserIP = true
                }
            }
            for (expiresAt, addresses) in [
                (0, ["127.0.0.1"]), (end + 1, ["127.0.0.1"]), (end, []), (end, ["127.0.0.1", "10.0.0.0/8"]),
                (end, ["126.0.0.0/7"]),
            ] as [(Int64, [Text])] {
                expectRefusal("INSUFFICIENT_PERMISSION") { _ = try Self.make(bound, child(expiresAt, addresses)) }
            }
            let (key, _) = try Self.make(bound, child(end, ["127.1.0.0/16"]))
            func update(_ path: Text, _ fill: (inout ProjectUpdateApiKeyRequest) -> Void) throws {
                var request = ProjectUpdateApiKeyRequest(
                    apiKeyID: key.apiKeyID, updateMask: ProtobufFieldMask(paths: [path]))
                fill(&request)
                let _: ProjectUpdateApiKeyResponse = try bound.call("postern.v1.Project/UpdateApiKey", request)
            }
            expectRefusal("INSUFFICIENT_PERMISSION") { try update("expires_at_micros") { $0.expiresAtMicros = 0 } }
            expectRefusal("INSUFFICIENT_PERMISSION") { try update("allowed_addresses") { $0.allowedAddresses = [] } }
            for path in ["quotas", "quotas.mutations_per_second"] as [Text] {
                expectRefusal("INSUFFICIENT_PERMISSION") {
                    try update(path) { $0.quotas = CallerQuotas(mutationsPerSecond: 9_999) }
                }
            }
            try update("display_name") { $0.displayName = "shop" }
        }
    }

    /// A new secret is as good as the key, so an admin cannot rotate a key that may do more than its own.
    @Test func aMightierKeyIsRevokedAndNotRotated() async throws {
        try await withServer { server in
            try Self.createTenants(server, "acme")
            let plain = try Self.client(server, Self.request())
            let mighty = try Self.make(server.connect(), Self.request { $0.exportPasswordHashes = true }).key
            expectRefusal("INSUFFICIENT_PERMISSION") { try Self.rotate(plain, mighty.apiKeyID) }
            try Self.revoke(plain, mighty.apiKeyID)
        }
    }

    @Test func aTenantHasNoMoreKeysThanTheLimitUnlessSomeAreOver() async throws {
        try await withServer(configure: { $0.limits.administration.apiKeysPerTenantMax = 3 }) { server in
            try Self.createTenants(server, "acme")
            let admin = try Self.client(server, Self.request())
            let first = try Self.make(admin, Self.request(.app)).key
            _ = try Self.make(admin, Self.request(.app))
            expectRefusal("TOO_MANY_API_KEYS") { _ = try Self.make(admin, Self.request(.app)) }
            try Self.revoke(admin, first.apiKeyID)
            expectRefusal("API_KEY_NOT_FOUND") { try Self.revoke(admin, "nobody") }
            _ = try Self.make(admin, Self.request(.app))
            // The revoked key was deleted to make room.
            #expect(try Self.list(admin).allSatisfy { $0.apiKeyID != first.apiKeyID })
            expectRefusal("TOO_MANY_API_KEYS") { _ = try Self.make(admin, Self.request(.app)) }
            // A project-admin makes one all the same.
            _ = try Self.make(server.connect(), Self.request(.app))
            #expect(try Self.list(admin).count == 4)
        }
    }

    @Test func theAdminsOfADeletedTenantMakeNoKeys() async throws {
        try await withServer { server in
            try Self.createTenants(server, "acme")
            let admin = try Self.client(server, Self.request())
            let key = try Self.make(admin, Self.request(.app)).key
            let _: TenantsDeleteResponse = try server.connect().call(
                "postern.v1.Tenants/Delete", TenantsDeleteRequest(tenantID: "acme"))
            expectRefusal("TENANT_NOT_FOUND") { _ = try Self.make(admin, Self.request(.app)) }
            expectRefusal("TENANT_NOT_FOUND") { try Self.rotate(admin, key.apiKeyID) }
        }
    }

    // MARK: Last use

    @Test func theLastUseIsNotedToTheHourAndBehindTheCalls() async throws {
        try await withServer { server in
            let (key, secret) = try Self.make(server.connect(), Self.request(.app, tenant: nil))
            func use() throws {
                let client = try server.connect(authenticated: false)
                client.apiKey = secret
                let _: ProjectWhoAmIResponse = try client.call("postern.v1.Project/WhoAmI", ProjectWhoAmIRequest())
            }
            func lastUse() async throws -> Int64 {
                await server.project.sweep()
                return try Self.list(server.connect()).first { $0.apiKeyID == key.apiKeyID }?.lastUsedAtMicros ?? -1
            }
            #expect(try await lastUse() == 0)
            let first = server.project.clock.now().microseconds
            try use()
            #expect(try await lastUse() == first)
            server.clock.advance(by: .minutes(59))
            try use()
            #expect(try await lastUse() == first)
            server.clock.advance(by: .minutes(1))
            let second = server.project.clock.now().microseconds
            try use()
            #expect(try await lastUse() == second)
            #expect(server.project.callers.uses.waitingCount <= 1)
        }
    }

    @Test func noMoreUsesAreNotedThanTheLimit() async throws {
        try await withServer(configure: { $0.limits.administration.apiKeyUsesWaitingMax = 2 }) { server in
            let uses = server.project.callers.uses
            for id in ["a", "b", "c", "a"] as [Text] { uses.note(id) }
            #expect(uses.waitingCount == 2)
            // Ids that belong to no key leave no record.
            await server.project.sweep()
            #expect(uses.waitingCount == 0)
        }
    }

    // MARK: What a credential may call

    private static func permissions(
        _ client: RawClient, _ tenantID: Text, _ methods: [Text]
    ) throws -> [MethodPermission] {
        let answer: ProjectTestPermissionsResponse = try client.call(
            "postern.v1.Project/TestPermissions", ProjectTestPermissionsRequest(tenantID: tenantID, methods: methods))
        return answer.permissions
    }

    @Test func aCredentialIsToldWhatItMayCall() async throws {
        try await withServer { server in
            try Self.createTenants(server, "acme", "beta")
            let admin = try Self.client(server, Self.request())
            let methods: [Text] = [
                "postern.v1.Users/Get", "postern.v1.Tenants/List", "postern.v1.Users/Fly", "postern.v1.Tokens/ListKeys",
            ]
            #expect(
                try Self.permissions(admin, "acme", methods).map(\.reason) == [
                    "", "INSUFFICIENT_PERMISSION", "UNKNOWN_METHOD", "",
                ])
            // The answer does not tell whether another tenant exists.
            for tenantID in ["beta", "nobody"] as [Text] {
                #expect(try Self.permissions(admin, tenantID, methods)[0].reason == "INSUFFICIENT_PERMISSION")
            }
            let project = try server.connect()
            #expect(try Self.permissions(project, "nobody", methods)[0].reason == "TENANT_NOT_FOUND")
            #expect(try Self.permissions(project, "acme", []).allSatisfy(\.allowed))
            #expect(try Self.permissions(project, "acme", []).count > 100)
            let most = server.project.limits.administration.methodsTestedMax
            #expect(try Self.permissions(project, "", Array(repeating: "x", count: most)).count == most)
            expectRefusal("TOO_MANY_ITEMS") {
                _ = try Self.permissions(project, "", Array(repeating: "x", count: most + 1))
            }
        }
    }
}
