import Base
import Crypto
import Identity
import Messages
import Store
import TestSupport
import Testing

/// The service Providers: what can be configured, by whom, and that a client secret never comes back.
@Suite struct ProvidersTests {
    struct Admin {
        let client: RawClient

        func create(
            _ provider: Provider, tenantID: Text = .empty, validateOnly: Bool = false, disabled: Bool = false
        ) throws -> Provider {
            let response: ProvidersCreateResponse = try client.call(
                "postern.v1.Providers/Create",
                ProvidersCreateRequest(
                    tenantID: tenantID, provider: provider, disabled: disabled, validateOnly: validateOnly))
            return response.provider ?? Provider()
        }

        func get(_ id: Text, tenantID: Text = .empty) throws -> Provider {
            let response: ProvidersGetResponse = try client.call(
                "postern.v1.Providers/Get", ProvidersGetRequest(tenantID: tenantID, providerID: id))
            return response.provider ?? Provider()
        }

        func list(size: Int32 = 0, token: Text = .empty, tenantID: Text = .empty) throws -> ProvidersListResponse {
            try client.call(
                "postern.v1.Providers/List",
                ProvidersListRequest(tenantID: tenantID, pageSize: size, pageToken: token))
        }

        func update(
            _ provider: Provider, _ paths: [Text], tenantID: Text = .empty, validateOnly: Bool = false
        ) throws -> Provider {
            let response: ProvidersUpdateResponse = try client.call(
                "postern.v1.Providers/Update",
                ProvidersUpdateRequest(
                    tenantID: tenantID, provider: provider, updateMask: ProtobufFieldMask(paths: paths),
                    validateOnly: validateOnly))
            return response.provider ?? Provider()
        }

        func delete(_ id: Text, tenantID: Text = .empty, validateOnly: Bool = false) throws {
            let _: ProvidersDeleteResponse = try client.call(
                "postern.v1.Providers/Delete",
                ProvidersDeleteRequest(tenantID: tenantID, providerID: id, validateOnly: validateOnly))
        }

        func makeTenant(_ id: Text) throws {
            let _: TenantsCreateResponse = try client.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: id))
        }
    }

    func corp(_ id: Text = "oidc.corp") -> Provider {
        var provider = Provider()
        provider.providerID = id
        provider.displayName = "Corp"
        provider.clientID = "client-1"
        provider.clientSecret = Secret("marker-secret-0815")
        provider.additionalAudiences = ["client-ios"]
        provider.issuer = "https://id.corp.example"
        provider.endpoints = ProviderEndpoints(token: "https://id.corp.example/t")
        provider.trust = ProviderTrust(
            level: .domains, domains: ["corp.example"], requiredClaim: RequiredClaim(name: "hd", value: "corp.example"))
        return provider
    }

    func withAdmin(_ body: (Admin, TestServer) throws -> Void) async throws {
        try await withServer { server in try body(Admin(client: try server.connect()), server) }
    }

    // MARK: Life

    @Test func aProviderIsMadeReadChangedListedAndDeleted() async throws {
        try await withAdmin { admin, server in
            let made = try admin.create(corp())
            var expected = corp()
            expected.clientSecret = .empty
            expected.hasClientSecret = true
            expected.enabled = true
            expected.createdAtMicros = server.clock.clock.now().microseconds
            expected.updatedAtMicros = expected.createdAtMicros
            expected.revision = 1
            #expect(made == expected)
            #expect(try admin.get("oidc.corp") == made)
            var change = Provider()
            change.providerID = "oidc.corp"
            change.displayName = "Corporation"
            let changed = try admin.update(change, ["display_name", "enabled"])
            #expect(changed.displayName == "Corporation" && !changed.enabled && changed.revision == 2)
            #expect(changed.issuer == made.issuer && changed.hasClientSecret)
            #expect(changed.updatedAtMicros > made.updatedAtMicros)
            #expect(try admin.list().providers == [changed])
            try admin.delete("oidc.corp")
            expectRefusal("PROVIDER_NOT_FOUND") { _ = try admin.get("oidc.corp") }
            expectRefusal("PROVIDER_NOT_FOUND") { try admin.delete("oidc.corp") }
            expectRefusal("PROVIDER_NOT_FOUND") { _ = try admin.update(change, ["enabled"]) }
            #expect(
                try events(server) == [
                    "providerCreated oidc.corp", "providerUpdated oidc.corp:display_name,enabled",
                    "providerDeleted oidc.corp",
                ])
        }
    }

    private func events(_ server: TestServer) throws -> [String] {
        try server.project.store.read { transaction in
            var events: [String] = []
            try transaction.scanEvents(tenant: "") { stored in
                let event = try EventRecord(decoding: stored.payload)
                if "\(event.kind)".hasPrefix("provider") { events.append("\(event.kind) \(event.detail)") }
                return true
            }
            return events
        }
    }

    @Test func onlyValidatingChangesNothing() async throws {
        try await withAdmin { admin, server in
            #expect(try admin.create(corp(), validateOnly: true).providerID == "oidc.corp")
            #expect(try admin.list().providers.isEmpty)
            let made = try admin.create(corp(), disabled: true)
            #expect(!made.enabled)
            expectRefusal("PROVIDER_ID_EXISTS") { _ = try admin.create(corp(), validateOnly: true) }
            var change = made
            change.enabled = true
            #expect(try admin.update(change, ["enabled"], validateOnly: true).enabled)
            try admin.delete("oidc.corp", validateOnly: true)
            #expect(try admin.get("oidc.corp") == made)
            #expect(try events(server) == ["providerCreated oidc.corp"])
        }
    }

    @Test func theListComesInPages() async throws {
        try await withAdmin { admin, _ in
            for index in 0..<5 { _ = try admin.create(corp(Text("oidc.p\(index)"))) }
            let first = try admin.list(size: 2)
            let second = try admin.list(size: 2, token: first.nextPageToken)
            let third = try admin.list(size: 2, token: second.nextPageToken)
            let ids = (first.providers + second.providers + third.providers).map(\.providerID)
            #expect(ids == (0..<5).map { Text("oidc.p\($0)") })
            #expect(third.nextPageToken.isEmpty)
        }
    }

    @Test func aTenantHasAtMostFiftyProviders() async throws {
        try await withAdmin { admin, _ in
            for index in 0..<50 { _ = try admin.create(corp(Text("oidc.p\(index)"))) }
            expectRefusal("TOO_MANY_PROVIDERS") { _ = try admin.create(corp()) }
            try admin.delete("oidc.p7")
            _ = try admin.create(corp())
        }
    }

    @Test func providersAreTheTenantsOwnAndGoWithIt() async throws {
        try await withAdmin { admin, server in
            try admin.makeTenant("acme")
            try admin.makeTenant("acme-2")
            _ = try admin.create(corp(), tenantID: "acme")
            _ = try admin.create(corp(), tenantID: "acme-2")
            #expect(try admin.list().providers.isEmpty)
            expectRefusal("PROVIDER_NOT_FOUND") { _ = try admin.get("oidc.corp") }
            let _: TenantsDeleteResponse = try admin.client.call(
                "postern.v1.Tenants/Delete", TenantsDeleteRequest(tenantID: "acme"))
            #expect(try server.project.store.read { try $0.count(Tables.providers) } == 1)
            #expect(try admin.list(tenantID: "acme-2").providers.count == 1)
        }
    }

    @Test func threeThousandProvidersTakeLittleRoomAndNoMemory() async throws {
        try await withServer { server in
            let store = server.project.store
            let before = try #require(try store.statistics().space).usedByteCount
            let rows = (0..<1_000).map { Text("tenant-\($0)") }
            let stored = ["google.com", "oidc.a", "oidc.b"].map { id in
                StoredProvider(provider: corp(id), sealedClientSecret: [UInt8](repeating: 1, count: 80))
            }
            try await store.write { transaction in
                for tenantID in rows {
                    for provider in stored {
                        let id = provider.provider?.providerID ?? .empty
                        try transaction.put(Tables.providers, TenantTextKey(tenantID, id), provider)
                    }
                }
            }
            let after = try #require(try store.statistics().space).usedByteCount
            #expect(after - before < 2_000_000)
            #expect(server.project.providers.cachedProviderCount == 0)
        }
    }

    @Test func theyCanBeManagedWhileAuthenticationIsSwitchedOff() async throws {
        try await withAdmin { admin, _ in
            let _: TenantsUpdateResponse = try admin.client.call(
                "postern.v1.Tenants/Update",
                TenantsUpdateRequest(
                    tenant: Messages.Tenant(disableAuth: true),
                    updateMask: ProtobufFieldMask(paths: ["disable_auth"])))
            _ = try admin.create(corp())
            #expect(try admin.list().providers.count == 1)
        }
    }

    // MARK: Who may

    @Test func onlyAProjectAdminLetsAProviderReachIntoTheNetwork() async throws {
        try await withServer { server in
            let admin = Admin(client: try server.connect())
            let key: ProjectCreateApiKeyResponse = try admin.client.call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(role: .tenantAdmin, scope: Scope(tenants: .tenantID(""))))
            let tenantAdmin = Admin(client: try server.connect())
            tenantAdmin.client.apiKey = key.secretKey
            for path in [\Provider.allowHTTPLoopback, \Provider.allowPrivateAddresses] {
                var provider = corp()
                provider[keyPath: path] = true
                expectRefusal("INSUFFICIENT_PERMISSION") { _ = try tenantAdmin.create(provider) }
                _ = try admin.create(provider)
                // Then only a project-admin may change where the provider is.
                provider.issuer = "https://sso.internal"
                let refused = failure { _ = try tenantAdmin.update(provider, ["issuer", "client_secret"]) }
                #expect(refused.reason == "INSUFFICIENT_PERMISSION")
                #expect(refused.metadata("required_role") == "project-admin")
                #expect(try tenantAdmin.update(provider, ["display_name"]).revision == 2)
                try admin.delete("oidc.corp")
                provider[keyPath: path] = false
                _ = try tenantAdmin.create(provider)
                provider[keyPath: path] = true
                let mask: [Text] = ["allow_http_loopback", "allow_private_addresses", "client_secret"]
                expectRefusal("INSUFFICIENT_PERMISSION") { _ = try tenantAdmin.update(provider, mask) }
                try tenantAdmin.delete("oidc.corp")
            }
        }
    }

    // MARK: What is refused

    @Test func aMaskNamesFieldsOnce() async throws {
        try await withAdmin { admin, _ in
            _ = try admin.create(corp())
            for paths in [[], ["x"], ["provider_id"], ["revision"], ["enabled", "enabled"], ["trust.level"]] as [[Text]]
            {
                expectRefusal("INVALID_UPDATE_MASK") { _ = try admin.update(corp(), paths) }
            }
        }
    }

    @Test func anUpdateIsCheckedLikeACreation() async throws {
        try await withAdmin { admin, _ in
            _ = try admin.create(corp())
            var change = corp()
            change.clientID = .empty
            expectRefusal("INVALID_CLIENT_ID") { _ = try admin.update(change, ["client_id"]) }
            change.issuer = .empty
            let refused = failure { _ = try admin.update(change, ["issuer", "client_secret"]) }
            #expect(refused.reason == "INVALID_ISSUER")
        }
    }

    // MARK: Test

    @Test func aTestSaysWhatWorksAndWhatDoesNot() async throws {
        try await withIdentityProvider { fake in
            try await withAdmin { admin, server in
                _ = try admin.create(fake.provider("oidc.test"))
                func test() throws -> ProvidersTestResponse {
                    try admin.client.call("postern.v1.Providers/Test", ProvidersTestRequest(providerID: "oidc.test"))
                }
                let good = try test()
                #expect(good.ok && good.steps.map(\.result) == [.passed, .passed, .passed, .passed, .passed])
                fake.misbehave(.html)
                server.clock.advance(by: .days(2))
                let bad = try test()
                #expect(!bad.ok && bad.steps.contains { $0.name == "jwks" && $0.result == .failed })
                #expect(bad.steps.allSatisfy { !$0.message.string.contains("html") })
                expectRefusal("PROVIDER_NOT_FOUND") {
                    let _: ProvidersTestResponse = try admin.client.call(
                        "postern.v1.Providers/Test", ProvidersTestRequest(providerID: "oidc.none"))
                }
                #expect(try events(server) == ["providerCreated oidc.test"])
            }
        }
    }
}
