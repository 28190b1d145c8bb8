import Base
import Messages
import Store
import TestSupport
import Testing

@testable import Identity

/// API keys, service accounts and certificate mappings of a tenant that was deleted.
@Suite struct OrphanedCredentialsTests {
    /// One credential of each kind, all of one tenant.
    private struct Credentials {
        let key: RawClient
        let backEnd: BackEnd
        let account: RawClient

        init(of tenantID: Text, _ server: TestServer) throws {
            self.key = try server.client(as: .tenantAdmin, of: tenantID)
            self.backEnd = try BackEnd(
                server, id: Text("of-\(tenantID)"), role: .tenantAdmin, scope: Scope(tenants: .tenantID(tenantID)))
            self.account = try backEnd.connect()
            try OrphanedCredentialsTests.map(tenantID, to: tenantID, server)
        }

        /// The id in the key's secret.
        var keyID: Text {
            get throws {
                let secret = try #require(key.apiKey)
                return try #require(Text(validating: secret.withBytes { Array([UInt8]($0)[3..<15]) }))
            }
        }
    }

    private static func map(_ name: Text, to tenantID: Text, _ server: TestServer) throws {
        let mapping = CertificateMapping(
            name: .uri(Text("spiffe://example.org/\(name)")),
            issuerKeySha256: Text(unchecked: [UInt8](repeating: UInt8(ascii: "a"), count: 64)), role: .app,
            scope: Scope(tenants: .tenantID(tenantID)))
        let _: ProjectCreateCertificateMappingResponse = try server.connect().call(
            "postern.v1.Project/CreateCertificateMapping",
            ProjectCreateCertificateMappingRequest(certificateMapping: mapping))
    }

    /// The ids of all credentials that a project-admin sees.
    private static func listed(_ server: TestServer) throws -> [Text] {
        let client = try server.connect()
        let keys: ProjectListApiKeysResponse = try client.call(
            "postern.v1.Project/ListApiKeys", ProjectListApiKeysRequest())
        let accounts: ProjectListServiceAccountsResponse = try client.call(
            "postern.v1.Project/ListServiceAccounts", ProjectListServiceAccountsRequest())
        let mappings: ProjectListCertificateMappingsResponse = try client.call(
            "postern.v1.Project/ListCertificateMappings", ProjectListCertificateMappingsRequest())
        return keys.apiKeys.map(\.apiKeyID) + accounts.serviceAccounts.map(\.serviceAccountID)
            + mappings.certificateMappings.map(\.certificateMappingID)
    }

    private static func rowCounts(_ server: TestServer) throws -> [Int] {
        try server.project.store.read { transaction in
            let ofKeys = try [transaction.count(Tables.apiKeys), transaction.count(Tables.apiKeyUses)]
            let ofAccounts = try transaction.count(Tables.serviceAccountKeys)
            let ofMappings = try transaction.count(Tables.certificateMappings)
            return ofKeys + [ofAccounts, ofMappings]
        }
    }

    private static func makeUser(_ client: RawClient, _ tenantID: Text, _ uid: Text) throws {
        let _: UsersCreateResponse = try client.call(
            "postern.v1.Users/Create", UsersCreateRequest(tenantID: tenantID, uid: uid))
    }

    private static func deleteTenant(_ tenantID: Text, _ server: TestServer) throws {
        let _: TenantsDeleteResponse = try server.connect().call(
            "postern.v1.Tenants/Delete", TenantsDeleteRequest(tenantID: tenantID))
    }

    @Test func `They are refused and not listed at once, and the sweep deletes them`() async throws {
        try await withServer { server in
            for tenantID in ["acme", "beta"] as [Text] { try server.makeTenant(tenantID) }
            let beta = try Credentials(of: "beta", server)
            try Self.makeUser(beta.key, "beta", "u1")
            await server.project.callers.uses.sweep()
            let (listed, counts) = (try Self.listed(server), try Self.rowCounts(server))
            let acme = try Credentials(of: "acme", server)
            try Self.makeUser(acme.key, "acme", "u1")
            try Self.makeUser(acme.account, "acme", "u2")
            await server.project.callers.uses.sweep()
            try Self.deleteTenant("acme", server)

            #expect(try Self.listed(server) == listed)
            expectRefusal("TENANT_NOT_FOUND") { try Self.makeUser(acme.key, "acme", "u3") }
            expectRefusal("TENANT_NOT_FOUND") { try Self.makeUser(acme.account, "acme", "u3") }
            expectRefusal("SERVICE_ACCOUNT_NOT_FOUND") { try acme.backEnd.delete() }
            expectRefusal("API_KEY_NOT_FOUND") {
                let _: ProjectRevokeApiKeyResponse = try server.connect().call(
                    "postern.v1.Project/RevokeApiKey", ProjectRevokeApiKeyRequest(apiKeyID: acme.keyID))
            }
            let countsBetween = try Self.rowCounts(server)
            #expect(countsBetween == [counts[0] + 1, counts[1] + 1, counts[2] + 1, counts[3] + 1])

            try await server.project.sweepForAll()
            #expect(try Self.rowCounts(server) == counts)
            #expect(try Self.listed(server) == listed)
            expectRefusal("CALLER_UNAUTHENTICATED") { try Self.makeUser(acme.key, "acme", "u3") }
            expectRefusal("CALLER_UNAUTHENTICATED") { try Self.makeUser(acme.account, "acme", "u3") }
            try Self.makeUser(beta.key, "beta", "u2")
            try Self.makeUser(beta.account, "beta", "u3")
        }
    }

    @Test func `No id is used again, and a certificate can be mapped anew before the sweep and after it`() async throws
    {
        try await withServer { server in
            for tenantID in ["acme", "beta", "gamma"] as [Text] { try server.makeTenant(tenantID) }
            _ = try Credentials(of: "acme", server)
            try Self.deleteTenant("acme", server)
            for round in 0..<2 {
                expectRefusal("TENANT_ID_EXISTS") { try server.makeTenant("acme") }
                expectRefusal("SERVICE_ACCOUNT_ID_EXISTS") {
                    _ = try BackEnd(server, id: "of-acme", scope: Scope(tenants: .tenantID("gamma")))
                }
                if round == 0 {
                    try Self.map("acme", to: "beta", server)
                    expectRefusal("CERTIFICATE_MAPPING_EXISTS") { try Self.map("acme", to: "gamma", server) }
                    try await server.project.sweepForAll()
                    let kept = try Self.rowCounts(server)
                    #expect(kept.last == 1)
                    try Self.deleteTenant("beta", server)
                    try await server.project.sweepForAll()
                } else {
                    try Self.map("acme", to: "gamma", server)
                }
            }
        }
    }

    @Test func `Many go in slices, around a damaged one`() async throws {
        try await withServer { server in
            for tenantID in ["acme", "beta"] as [Text] { try server.makeTenant(tenantID) }
            try await server.project.store.write { transaction in
                for number in 0..<900 {
                    let id = Text("key-\(1_000 + number)")
                    let scope = Scope(tenants: .tenantID(number % 3 == 0 ? "beta" : "acme"))
                    let key = ApiKey(apiKeyID: id, role: .app, scope: scope)
                    try transaction.put(Tables.apiKeys, TextKey(id), StoredApiKey(apiKey: key))
                    try transaction.noteTenant(of: key)
                }
                // No record begins so.
                try [UInt8]([0xFF]).withUnsafeBytes {
                    try transaction.put(Tables.apiKeys, TextKey("key-1400-damaged"), bytes: $0)
                }
            }
            let countBefore = try Self.rowCounts(server)[0]
            try Self.deleteTenant("acme", server)
            let commits = try server.project.store.statistics().commits
            try await server.project.sweepForAll()
            #expect(try Self.rowCounts(server)[0] == countBefore - 600)
            let writeCount = try server.project.store.statistics().commits - commits
            #expect(writeCount >= 4)
            let index = try server.project.store.read { try $0.count(Tables.apiKeysOfTenants) }
            #expect(index == 300)
        }
    }

    @Test func `One node of a cluster deletes them, and the others hear of it`() async throws {
        try await withTwoServers { first, second in
            try first.makeTenant("acme")
            let (listed, counts) = (try Self.listed(first), try Self.rowCounts(first))
            let acme = try Credentials(of: "acme", first)
            let client = try second.connect(authenticated: false)
            client.apiKey = acme.key.apiKey
            try Self.makeUser(client, "acme", "u1")
            try Self.deleteTenant("acme", first)
            try await second.project.store.reachJournalEnd()
            #expect(try Self.listed(second) == listed)
            expectRefusal("TENANT_NOT_FOUND") { try Self.makeUser(client, "acme", "u2") }
            try await first.project.sweepForAll()
            try await second.project.store.reachJournalEnd()
            #expect(try Self.rowCounts(second) == counts)
            expectRefusal("CALLER_UNAUTHENTICATED") { try Self.makeUser(client, "acme", "u2") }
        }
    }
}
