import Base
import Crypto
import Identity
import Messages
import TestSupport
import Testing
import Wire

/// A stream may do what its credential may do now, not what it could when the stream began.
@Suite struct LongStreamTests {
    enum Loss: CaseIterable { case keyRevoked, scopeNarrowed, roleLowered, accountDisabled, accountDeleted, expired }

    @Test(arguments: Loss.allCases)
    func aServiceAccountsStreamEndsWithWhatItBeganWith(_ loss: Loss) async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server, role: .tenantAdmin)
            try backEnd.makeTenant("acme")
            let stream = try RawStream<TokensWatchRevocationsResponse>(
                server, "postern.v1.Tokens/WatchRevocations", TokensWatchRevocationsRequest(heartbeatSeconds: 1),
                apiKey: Secret(backEnd.callerToken().bytes))
            _ = try #require(try stream.next())
            // The account's rights are the same: the stream goes on.
            try backEnd.update(["display_name"]) { $0.displayName = "another name" }
            _ = try #require(try stream.next())
            switch loss {
            case .keyRevoked: try backEnd.revokeKey()
            case .scopeNarrowed: try backEnd.update(["scope"]) { $0.scope = Scope(tenants: .tenantID("acme")) }
            case .roleLowered: try backEnd.update(["role"]) { $0.role = .app }
            case .accountDisabled: try backEnd.update(["disabled"]) { $0.disabled = true }
            case .accountDeleted: try backEnd.delete()
            case .expired: server.clock.advance(by: .hours(2))
            }
            try expectEnd(stream)
        }
    }

    @Test func aWatcherOfRefusalsWhoseKeyIsRevokedIsToldNoMore() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let key = try Self.adminKey(client)
            try client.setTenant(["client.permissions.disabled_user_signup"]) {
                $0.client = ClientConfig(permissions: ClientPermissions(disabledUserSignup: true))
            }
            func refuse() { expectRefusal("ADMIN_RESTRICTED_OPERATION") { _ = try client.signUp("ada@example.com") } }
            for _ in 0..<2 { refuse() }
            let stream = try RawStream<TenantsWatchDenialsResponse>(
                server, "postern.v1.Tenants/WatchDenials", TenantsWatchDenialsRequest(afterSequence: 1),
                apiKey: key.secretKey)
            #expect(try stream.next()?.denial?.sequence == 2)
            try Self.revoke(client, key)
            refuse()
            expectRefusal("CALLER_UNAUTHENTICATED") { _ = try stream.next() }
        }
    }

    @Test(arguments: [false, true])
    func anImportWhoseKeyIsRevokedOrWhoseTenantIsGoneGoesNoFurther(isTenantDeleted: Bool) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let _: TenantsCreateResponse = try client.client.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
            let key = try Self.adminKey(client)
            let importer = try server.connect()
            importer.apiKey = key.secretKey
            let stream = importer.nextStream()
            try importer.send(
                importer.request(
                    "postern.v1.Users/Import",
                    UsersImportRequest(tenantID: "acme", users: [ImportUser(uid: "first")]), stream: stream,
                    kind: .remoteOpen))
            #expect(try UsersImportResponse(decoding: try importer.readFrame().payload).createdCount == 1)
            if isTenantDeleted {
                let _: TenantsDeleteResponse = try client.client.call(
                    "postern.v1.Tenants/Delete", TenantsDeleteRequest(tenantID: "acme"))
            } else {
                try Self.revoke(client, key)
            }
            var buffer = ByteBuffer()
            buffer.appendData(stream: stream) {
                UsersImportRequest(users: [ImportUser(uid: "second")]).encode(into: &$0)
            }
            try importer.send(buffer.copyBytes())
            expectRefusal(isTenantDeleted ? "TENANT_NOT_FOUND" : "CALLER_UNAUTHENTICATED") {
                let _: UsersImportResponse = try RawClient.response(try importer.readFrame())
            }
            expectRefusal(isTenantDeleted ? "TENANT_NOT_FOUND" : "USER_NOT_FOUND") {
                let _: UsersGetResponse = try client.client.call(
                    "postern.v1.Users/Get", UsersGetRequest(tenantID: "acme", uid: "second"))
            }
        }
    }

    private static func adminKey(_ client: IdentityClient) throws -> ProjectCreateApiKeyResponse {
        try client.client.call(
            "postern.v1.Project/CreateApiKey",
            ProjectCreateApiKeyRequest(role: .tenantAdmin, scope: Scope(tenants: .all(true))))
    }

    private static func revoke(_ client: IdentityClient, _ key: ProjectCreateApiKeyResponse) throws {
        let _: ProjectRevokeApiKeyResponse = try client.client.call(
            "postern.v1.Project/RevokeApiKey",
            ProjectRevokeApiKeyRequest(apiKeyID: key.apiKey?.apiKeyID ?? .empty))
    }
}

/// The stream ends, after two more messages at most: a heartbeat may be on its way.
private func expectEnd<Response: Message>(_ stream: RawStream<Response>) throws {
    expectRefusal("CALLER_UNAUTHENTICATED") {
        for _ in 0..<3 { _ = try stream.next() }
    }
}
