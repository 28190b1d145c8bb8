import Base
import Identity
import Messages
import Store
import TestSupport
import Testing

/// A call that makes or changes a credential waits for the writer while the key that it came with is revoked.
@Suite struct RevokedMakerTests {
    private static let all = Scope(tenants: .all(true))

    private struct Key: Sendable {
        let id: Text
        let secret: Secret
    }

    private static func makeKey(_ server: TestServer, _ role: Role) throws -> Key {
        let made: ProjectCreateApiKeyResponse = try server.connect().call(
            "postern.v1.Project/CreateApiKey", ProjectCreateApiKeyRequest(role: role, scope: all))
        return Key(id: made.apiKey?.apiKeyID ?? .empty, secret: made.secretKey)
    }

    /// The failure of a call with a project-admin's key that is revoked while the call is on its way.
    private static func failureOfRevoked(
        _ server: TestServer, _ call: @escaping @Sendable (RawClient) throws -> Void
    ) async throws -> Failure {
        let maker = try makeKey(server, .projectAdmin)
        return try await failureOfCall(
            server,
            overtakenByWrite: { transaction in
                guard var stored = try transaction.get(Tables.apiKeys, TextKey(maker.id)) else { return }
                stored.apiKey?.revokedAtMicros = 1
                try transaction.put(Tables.apiKeys, TextKey(maker.id), stored)
            }
        ) {
            let client = try server.connect(authenticated: false)
            client.apiKey = maker.secret
            try call(client)
        }
    }

    @Test func aRevokedKeyMakesNoAPIKeyAndChangesNone() async throws {
        try await withServer { server in
            let app = try Self.makeKey(server, .app)
            let made = try await Self.failureOfRevoked(server) {
                let _: ProjectCreateApiKeyResponse = try $0.call(
                    "postern.v1.Project/CreateApiKey", ProjectCreateApiKeyRequest(role: .app, scope: Self.all))
            }
            #expect(made.reason == "CALLER_UNAUTHENTICATED")
            let rotated = try await Self.failureOfRevoked(server) {
                let _: ProjectRotateApiKeyResponse = try $0.call(
                    "postern.v1.Project/RotateApiKey", ProjectRotateApiKeyRequest(apiKeyID: app.id))
            }
            #expect(rotated.reason == "CALLER_UNAUTHENTICATED")
            let changed = try await Self.failureOfRevoked(server) {
                let _: ProjectUpdateApiKeyResponse = try $0.call(
                    "postern.v1.Project/UpdateApiKey",
                    ProjectUpdateApiKeyRequest(
                        apiKeyID: app.id, updateMask: ProtobufFieldMask(paths: ["display_name"]), displayName: "mine"))
            }
            #expect(changed.reason == "CALLER_UNAUTHENTICATED")
            let keys: ProjectListApiKeysResponse = try server.connect().call(
                "postern.v1.Project/ListApiKeys", ProjectListApiKeysRequest())
            let live = keys.apiKeys.filter { $0.revokedAtMicros == 0 }
            let names = live.filter { $0.apiKeyID == app.id }.map(\.displayName)
            #expect(live.count == 2 && names == [.empty])
        }
    }

    @Test func aRevokedKeyMakesNoServiceAccountAndNoKeyOfOne() async throws {
        try await withServer { server in
            let _: ProjectCreateServiceAccountResponse = try server.connect().call(
                "postern.v1.Project/CreateServiceAccount",
                ProjectCreateServiceAccountRequest(serviceAccountID: "backend", role: .app, scope: Self.all))
            let made = try await Self.failureOfRevoked(server) {
                let _: ProjectCreateServiceAccountResponse = try $0.call(
                    "postern.v1.Project/CreateServiceAccount",
                    ProjectCreateServiceAccountRequest(serviceAccountID: "mine", role: .projectAdmin, scope: Self.all))
            }
            #expect(made.reason == "CALLER_UNAUTHENTICATED")
            let raised = try await Self.failureOfRevoked(server) {
                let _: ProjectUpdateServiceAccountResponse = try $0.call(
                    "postern.v1.Project/UpdateServiceAccount",
                    ProjectUpdateServiceAccountRequest(
                        serviceAccountID: "backend", updateMask: ProtobufFieldMask(paths: ["role"]),
                        role: .projectAdmin))
            }
            #expect(raised.reason == "CALLER_UNAUTHENTICATED")
            let key = try await Self.failureOfRevoked(server) {
                let _: ProjectCreateServiceAccountKeyResponse = try $0.call(
                    "postern.v1.Project/CreateServiceAccountKey",
                    ProjectCreateServiceAccountKeyRequest(serviceAccountID: "backend", algorithm: "ES256"))
            }
            #expect(key.reason == "CALLER_UNAUTHENTICATED")
            let mapped = try await Self.failureOfRevoked(server) {
                let mapping = CertificateMapping(
                    name: .uri("spiffe://example.org/mine"), issuerKeySha256: Text(String(repeating: "0", count: 64)),
                    role: .projectAdmin, scope: Self.all)
                let _: ProjectCreateCertificateMappingResponse = try $0.call(
                    "postern.v1.Project/CreateCertificateMapping",
                    ProjectCreateCertificateMappingRequest(certificateMapping: mapping))
            }
            #expect(mapped.reason == "CALLER_UNAUTHENTICATED")
            try server.project.store.read { transaction in
                let backEnd = try transaction.get(Tables.serviceAccounts, TextKey("backend"))?.serviceAccount
                let isMade = try transaction.exists(Tables.serviceAccounts, TextKey("mine"))
                #expect(backEnd?.role == .app && !isMade)
                let keyCount = try transaction.count(Tables.serviceAccountKeys)
                let mappingCount = try transaction.count(Tables.certificateMappings)
                #expect(keyCount == 0 && mappingCount == 0)
            }
        }
    }
}
