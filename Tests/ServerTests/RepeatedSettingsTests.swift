import Base
import Identity
import Messages
import Service
import Store
import TestSupport
import Testing
import Wire

/// Changes of settings, and changes of many users and tenants, that are sent again with the same idempotency-key.
@Suite struct RepeatedSettingsTests {
    private static func key(_ text: Text) -> [OutgoingMetadata.Entry] {
        [OutgoingMetadata.Entry(key: "idempotency-key", value: text)]
    }

    private static func settings(_ client: RawClient, _ tenantID: Text = .empty) throws -> Messages.Tenant {
        let found: TenantsGetResponse = try client.call(
            "postern.v1.Tenants/Get", TenantsGetRequest(tenantID: tenantID))
        return found.tenant ?? Messages.Tenant()
    }

    private static func create(_ client: RawClient, _ tenantID: Text, displayName: Text = .empty) throws {
        let _: TenantsCreateResponse = try client.call(
            "postern.v1.Tenants/Create",
            TenantsCreateRequest(
                tenantID: tenantID, tenant: Messages.Tenant(displayName: displayName),
                updateMask: ProtobufFieldMask(paths: ["display_name"])))
    }

    /// Says whether end users may sign up with a password.
    private static func allow(_ client: RawClient, _ isAllowed: Bool, key: Text) throws {
        let _: TenantsUpdateResponse = try client.call(
            "postern.v1.Tenants/Update",
            TenantsUpdateRequest(
                tenant: Messages.Tenant(allowPasswordSignup: isAllowed),
                updateMask: ProtobufFieldMask(paths: ["allow_password_signup"])), metadata: self.key(key))
    }

    @Test func `A change over a revision is not refused for the revision that it made`() async throws {
        try await withServer { server in
            let client = try server.connect()
            let revision = try Self.settings(client).revision
            func rename() throws -> TenantsUpdateResponse {
                try client.call(
                    "postern.v1.Tenants/Update",
                    TenantsUpdateRequest(
                        tenant: Messages.Tenant(displayName: "Acme"),
                        updateMask: ProtobufFieldMask(paths: ["display_name"]), expectedRevision: revision),
                    metadata: Self.key("k1"))
            }
            let first = try rename()
            let again = try rename()
            #expect(again == first && first.tenant?.revision == revision + 1)
        }
    }

    @Test func `A late repeat does not undo a later change`() async throws {
        try await withServer { server in
            let client = try server.connect()
            try Self.allow(client, false, key: "k1")
            try Self.allow(client, true, key: "k2")
            try Self.allow(client, false, key: "k1")
            let after = try Self.settings(client)
            #expect(after.allowPasswordSignup)
            expectRefusal("IDEMPOTENCY_KEY_REUSED") { try Self.allow(client, true, key: "k1") }
        }
    }

    @Test func `Settings are copied once, and the repeat needs no template any more`() async throws {
        try await withServer { server in
            let client = try server.connect()
            try Self.create(client, "template")
            try Self.create(client, "acme")
            func copy() throws -> TenantsCopySettingsResponse {
                try client.call(
                    "postern.v1.Tenants/CopySettings",
                    TenantsCopySettingsRequest(tenantID: "acme", templateTenantID: "template"),
                    metadata: Self.key("k1"))
            }
            func make() throws -> TenantsCreateResponse {
                try client.call(
                    "postern.v1.Tenants/Create",
                    TenantsCreateRequest(tenantID: "beta", templateTenantID: "template"), metadata: Self.key("k1"))
            }
            let (copied, made) = (try copy(), try make())
            let _: TenantsDeleteResponse = try client.call(
                "postern.v1.Tenants/Delete", TenantsDeleteRequest(tenantID: "template"))
            let (copiedAgain, madeAgain) = (try copy(), try make())
            #expect(copiedAgain == copied && madeAgain == made)
        }
    }

    @Test func `Sessions without a second factor are ended once for each key`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            func update() throws -> TenantsUpdateResponse {
                try client.client.call(
                    "postern.v1.Tenants/Update",
                    TenantsUpdateRequest(
                        tenant: Messages.Tenant(displayName: "Acme"),
                        updateMask: ProtobufFieldMask(paths: ["display_name"]), endSessionsWithoutSecondFactor: true),
                    metadata: Self.key("k1"))
            }
            let first = try update()
            #expect(first.endedSessionCount == 1)
            server.clock.advance(by: .seconds(1))
            let later = try client.signUp("bob@example.com")
            let again = try update()
            #expect(again == first)
            let idToken = try #require(later.tokens).idToken
            let bob = try client.lookup(idToken)
            #expect(bob.email == "bob@example.com")
        }
    }

    @Test func `Users of a page are signed out once for each key`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            for email in ["ada@example.com", "bob@example.com"] as [Text] { _ = try client.signUp(email) }
            func revoke(size: Int32) throws -> UsersUpdateManyResponse {
                try client.client.call(
                    "postern.v1.Users/UpdateMany",
                    UsersUpdateManyRequest(
                        pageSize: size, allUsers: true, updateMask: ProtobufFieldMask(paths: ["revoke_tokens"]),
                        revokeTokens: true), metadata: Self.key("k1"))
            }
            let first = try revoke(size: 1)
            #expect(first.changedCount == 1 && !first.nextPageToken.isEmpty)
            server.clock.advance(by: .seconds(1))
            let later = try client.signIn("ada@example.com").tokens
            let laterOfBob = try client.signIn("bob@example.com").tokens
            let again = try revoke(size: 1)
            #expect(again == first)
            for tokens in [later, laterOfBob] { _ = try client.lookup(try #require(tokens).idToken) }
            expectRefusal("IDEMPOTENCY_KEY_REUSED") { _ = try revoke(size: 2) }
        }
    }

    /// Deleting has no quota of bytes. If each answer were kept, an admin of a full tenant could fill the store with
    /// answers about users that do not exist.
    @Test func `A batch that deletes no more users than it refuses keeps no answer`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            for email in ["ada@example.com", "bob@example.com"] as [Text] { _ = try client.signUp(email) }
            let (ada, bob) = (try client.find("ada@example.com").uid, try client.find("bob@example.com").uid)
            func delete(_ uids: [Text], key: Text) throws -> UsersBatchDeleteResponse {
                try client.client.call(
                    "postern.v1.Users/BatchDelete", UsersBatchDeleteRequest(uids: uids, force: true),
                    metadata: Self.key(key))
            }
            func recordCount() throws -> Int { try server.project.store.read { try $0.count(Tables.idempotency) } }
            let before = try recordCount()
            for (key, uids) in [("k1", []), ("k2", ["nobody"])] as [(Text, [Text])] {
                _ = try delete(uids, key: key)
            }
            let first = try delete([ada, "nobody"], key: "k3")
            let after = try recordCount()
            #expect(first.deletedCount == 1 && after == before)
            let again = try delete([ada, "nobody"], key: "k3")
            #expect(again.deletedCount == 0 && again.rejections.map(\.uid) == [ada, "nobody"])
            let second = try delete([bob], key: "k4")
            let secondAgain = try delete([bob], key: "k4")
            #expect(second.deletedCount == 1 && secondAgain == second)
        }
    }

    /// The answer is above the bytes of a page, which are what a record may have.
    @Test func `A long answer about many tenants is given again without the values`() async throws {
        try await withServer(configure: { $0.limits.pageBytesMax = 300 }) { server in
            let client = try server.connect()
            try Self.create(client, "acme", displayName: Text(String(repeating: "a", count: 200)))
            func rename() throws -> TenantsUpdateManyResponse {
                try client.call(
                    "postern.v1.Tenants/UpdateMany",
                    TenantsUpdateManyRequest(
                        filter: TenantFilter(tenantIDPrefix: "acme"),
                        tenant: Messages.Tenant(displayName: Text(String(repeating: "b", count: 200))),
                        updateMask: ProtobufFieldMask(paths: ["display_name"])), metadata: Self.key("k1"))
            }
            let (first, again) = (try rename(), try rename())
            let change = try #require(first.results.first?.change)
            #expect(change.before != nil && change.after != nil)
            let kept = try #require(again.results.first?.change)
            #expect(kept.before == nil && kept.after == nil)
            #expect(kept.paths == change.paths && kept.revision == change.revision)
            #expect(again.nextPageToken == first.nextPageToken)
        }
    }
}
