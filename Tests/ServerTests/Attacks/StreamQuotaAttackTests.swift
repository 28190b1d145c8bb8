import Base
import Identity
import Messages
import Service
import Store
import TestSupport
import Testing

/// The first thing that some streams do is a write, which has the same rates as any other.
@Suite struct StreamQuotaAttackTests {
    /// Of twenty streams, where the first ones are admitted.
    private static func reasons(admitted count: Int) -> [String] {
        [String](repeating: "", count: count) + [String](repeating: "QUOTA_EXCEEDED", count: 20 - count)
    }

    @Test func `Imports that begin with a signer key each have the rate of any change`() async throws {
        try await withServer(configure: { $0.limits.mutationsPerAdminPerSecond = 1 }) { server in
            try server.makeTenant("acme")
            let reasons = try (0..<20).map { number in
                let client = try server.client(as: .tenantAdmin, of: "acme")
                let key = Secret([UInt8](repeating: UInt8(number), count: 64))
                let spec = FirebaseScryptSpec(signerKey: key, saltSeparator: [7], rounds: 8, memoryCost: 14)
                return failure {
                    _ = try ImportTests.importing(client, [], spec: .firebaseScrypt(spec), tenantID: "acme")
                }.reason
            }
            // Four seconds' worth, because the clock stands still. The fourth key is kept, and its batch is refused.
            #expect(reasons == Self.reasons(admitted: 3))
            let keptCount = try server.project.store.read { try $0.count(Tables.hashSecrets) }
            #expect(keptCount == 4)
        }
    }

    @Test func `Exports of hashes have the rate of any change, also those of a full tenant`() async throws {
        try await withServer(configure: { $0.limits.mutationsPerAdminPerSecond = 1 }) { server in
            try server.makeTenant("acme", ["quotas"]) { $0.quotas = TenantQuotas(storedBytes: 1) }
            let made: ProjectCreateApiKeyResponse = try server.connect().call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(
                    role: .tenantAdmin, scope: Scope(tenants: .tenantID("acme")), exportPasswordHashes: true))
            func export(withHashes: Bool = true) throws {
                let stream = try RawStream<UsersExportResponse>(
                    server, "postern.v1.Users/Export",
                    UsersExportRequest(tenantID: "acme", includePasswordHashes: withHashes), apiKey: made.secretKey)
                while try stream.next() != nil {}
            }
            let reasons = (0..<20).map { _ in failure { try export() }.reason }
            // Four seconds' worth, and as much again in reserve.
            #expect(reasons == Self.reasons(admitted: 8))
            // An export that leaves no event has no rate.
            try export(withHashes: false)
            server.clock.advance(by: .seconds(2))
            try export()
        }
    }
}
