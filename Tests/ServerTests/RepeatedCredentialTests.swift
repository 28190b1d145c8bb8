import Base
import Messages
import Service
import TestSupport
import Testing
import Wire

/// A credential was made and the answer was lost: the repeat is told so, whatever a new request would be told.
@Suite struct RepeatedCredentialTests {
    private static let key = [OutgoingMetadata.Entry(key: "idempotency-key", value: "k1")]

    @Test func theLastAPIKeyThatATenantMayHave() async throws {
        try await withServer(configure: { $0.limits.administration.apiKeysPerTenantMax = 2 }) { server in
            let project = try server.connect()
            let _: TenantsCreateResponse = try project.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
            let made: ProjectCreateApiKeyResponse = try project.call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(role: .tenantAdmin, scope: Scope(tenants: .tenantID("acme"))))
            let admin = try server.connect(authenticated: false)
            admin.apiKey = made.secretKey
            let request = ProjectCreateApiKeyRequest(role: .app, scope: Scope(tenants: .tenantID("acme")))
            func create(_ metadata: [OutgoingMetadata.Entry]) throws {
                let _: ProjectCreateApiKeyResponse = try admin.call(
                    "postern.v1.Project/CreateApiKey", request, metadata: metadata)
            }
            try create(Self.key)
            expectRefusal("ALREADY_DONE") { try create(Self.key) }
            expectRefusal("TOO_MANY_API_KEYS") { try create([]) }
        }
    }

    @Test func theLastKeyThatAServiceAccountMayHave() async throws {
        try await withServer(configure: { $0.limits.serviceAccountKeysMax = 1 }) { server in
            let client = try server.connect()
            let _: ProjectCreateServiceAccountResponse = try client.call(
                "postern.v1.Project/CreateServiceAccount",
                ProjectCreateServiceAccountRequest(
                    serviceAccountID: "backend", role: .app, scope: Scope(tenants: .all(true))))
            let request = ProjectCreateServiceAccountKeyRequest(serviceAccountID: "backend", algorithm: "ES256")
            func create(_ metadata: [OutgoingMetadata.Entry]) throws {
                let _: ProjectCreateServiceAccountKeyResponse = try client.call(
                    "postern.v1.Project/CreateServiceAccountKey", request, metadata: metadata)
            }
            try create(Self.key)
            expectRefusal("ALREADY_DONE") { try create(Self.key) }
            expectRefusal("TOO_MANY_SERVICE_ACCOUNT_KEYS") { try create([]) }
        }
    }

    /// A mapping holds no secret, so its answer is given again.
    @Test func aCertificateMapping() async throws {
        try await withServer { server in
            let client = try server.connect()
            let mapping = CertificateMapping(
                name: .uri("spiffe://example.org/mailer"), issuerKeySha256: Text(String(repeating: "0", count: 64)),
                role: .app, scope: Scope(tenants: .all(true)))
            let request = ProjectCreateCertificateMappingRequest(certificateMapping: mapping)
            func create(_ metadata: [OutgoingMetadata.Entry]) throws -> CertificateMapping? {
                let made: ProjectCreateCertificateMappingResponse = try client.call(
                    "postern.v1.Project/CreateCertificateMapping", request, metadata: metadata)
                return made.certificateMapping
            }
            let first = try create(Self.key)
            server.clock.advance(by: .seconds(1))
            #expect(try create(Self.key) == first)
            expectRefusal("CERTIFICATE_MAPPING_EXISTS") { _ = try create([]) }
        }
    }
}
