import Base
import Identity
import Messages
import Service
import Store
import TestSupport
import Testing

/// Nobody can read the log of a deleted tenant, and no purge would find a new event in it.
@Suite struct DeletedTenantLogTests {
    @Test func `A key of a deleted tenant takes no change, and the tenant's log no event`() async throws {
        try await withServer { server in
            try server.makeTenant("acme")
            let admin = try server.client(as: .tenantAdmin, of: nil)
            let made: ProjectCreateApiKeyResponse = try admin.call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(role: .app, scope: Scope(tenants: .tenantID("acme"))))
            let id = try #require(made.apiKey).apiKeyID
            let _: TenantsDeleteResponse = try server.connect().call(
                "postern.v1.Tenants/Delete", TenantsDeleteRequest(tenantID: "acme"))
            let newest = try server.project.store.read { try $0.newestEventSequence(tenantID: "acme") }
            expectRefusal("API_KEY_NOT_FOUND") {
                let _: ProjectRotateApiKeyResponse = try admin.call(
                    "postern.v1.Project/RotateApiKey", ProjectRotateApiKeyRequest(apiKeyID: id))
            }
            expectRefusal("API_KEY_NOT_FOUND") {
                let _: ProjectRevokeApiKeyResponse = try admin.call(
                    "postern.v1.Project/RevokeApiKey", ProjectRevokeApiKeyRequest(apiKeyID: id))
            }
            expectRefusal("API_KEY_NOT_FOUND") {
                let _: ProjectUpdateApiKeyResponse = try admin.call(
                    "postern.v1.Project/UpdateApiKey",
                    ProjectUpdateApiKeyRequest(
                        apiKeyID: id, updateMask: ProtobufFieldMask(paths: ["display_name"]), displayName: "x"))
            }
            expectRefusal("TENANT_NOT_FOUND") {
                let _: ProjectCreateApiKeyResponse = try admin.call(
                    "postern.v1.Project/CreateApiKey",
                    ProjectCreateApiKeyRequest(role: .app, scope: Scope(tenants: .tenantID("acme"))))
            }
            let newestAfter = try server.project.store.read { try $0.newestEventSequence(tenantID: "acme") }
            #expect(newestAfter == newest)
        }
    }
}
