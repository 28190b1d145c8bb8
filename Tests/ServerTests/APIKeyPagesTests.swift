import Base
import Messages
import Service
import TestSupport
import Testing

/// The pages of `ListApiKeys` for a tenant's admin, in a project with many keys of other tenants.
@Suite struct APIKeyPagesTests {
    private static func makeKey(
        _ admin: RawClient, _ tenantID: Text, _ role: Role = .app
    ) throws -> (id: Text, secret: Secret) {
        let made: ProjectCreateApiKeyResponse = try admin.call(
            "postern.v1.Project/CreateApiKey",
            ProjectCreateApiKeyRequest(role: role, scope: Scope(tenants: .tenantID(tenantID))))
        return (try #require(made.apiKey).apiKeyID, made.secretKey)
    }

    /// What a page token names: version and tag take 17 bytes.
    private static func position(in token: Text) throws -> Text {
        let bytes = try #require(Base64.url.decode(token.bytes))
        return try #require(Text(validating: Array(bytes.dropFirst(17))))
    }

    @Test(arguments: [2, 1_000]) func `They name keys of the tenant only, and none is empty`(
        rowsRead: Int
    ) async throws {
        try await withServer(configure: { $0.limits.pageRowsReadMax = rowsRead }) { server in
            let admin = try server.connect()
            for tenantID in ["acme", "other"] as [Text] {
                let _: TenantsCreateResponse = try admin.call(
                    "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: tenantID))
            }
            let (ownID, secret) = try Self.makeKey(admin, "acme", .tenantAdmin)
            var own: Set<Text> = [ownID]
            for number in 0..<60 {
                let isOwn = number % 20 == 0
                let (id, _) = try Self.makeKey(admin, isOwn ? "acme" : "other")
                if isOwn { own.insert(id) }
            }
            let client = try server.connect(authenticated: false)
            client.apiKey = secret
            var (found, pageCount, token): ([Text], Int, Text) = ([], 0, .empty)
            repeat {
                let page: ProjectListApiKeysResponse = try client.call(
                    "postern.v1.Project/ListApiKeys", ProjectListApiKeysRequest(pageSize: 1, pageToken: token))
                #expect(page.apiKeys.count == 1)
                found += page.apiKeys.map(\.apiKeyID)
                (token, pageCount) = (page.nextPageToken, pageCount + 1)
                if !token.isEmpty { #expect(own.contains(try Self.position(in: token))) }
            } while !token.isEmpty && pageCount < 100
            #expect(found == own.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) })
        }
    }
}
