import Base
import Crypto
import Messages
import Store
import TestSupport
import Testing

@testable import Identity

/// API keys that were made before there was an index of the keys of each tenant.
@Suite struct OldKeysTests {
    private static func ids(_ client: RawClient) throws -> [Text] {
        let page: ProjectListApiKeysResponse = try client.call(
            "postern.v1.Project/ListApiKeys", ProjectListApiKeysRequest())
        return page.apiKeys.map(\.apiKeyID)
    }

    @Test func `A start looks at no key, and a sweep indexes them around a damaged one`() async throws {
        try await withTemporaryDirectory { directory in
            let (clock, masterKey) = (ManualClock(), MasterKey.generate(random: .system))
            let (adminKey, tenantKey, made) = try await withServer(
                directory: directory, clock: clock, masterKey: masterKey
            ) { server in
                try server.makeTenant("acme")
                let client = try server.client(as: .tenantAdmin, of: "acme")
                let made = try Self.ids(client)
                try await server.project.store.write { transaction in
                    for id in made { try transaction.delete(Tables.apiKeysOfTenants, TenantTextKey("acme", id)) }
                    // No record begins so.
                    try [UInt8]([0xFF]).withUnsafeBytes {
                        try transaction.put(Tables.apiKeys, TextKey("000000000000"), bytes: $0)
                    }
                }
                return (server.adminKey, try #require(client.apiKey), made)
            }
            try await withServer(
                directory: directory, clock: clock, masterKey: masterKey, adminKey: adminKey
            ) { server in
                let client = try server.connect(authenticated: false)
                client.apiKey = tenantKey
                #expect(try Self.ids(client).isEmpty)
                // The keys of a tenant do not depend on the clock, for which the rest of a sweep waits.
                clock.step(by: .zero - .days(1))
                await server.project.sweep()
                #expect(server.project.sweepsPutOff.value == 1)
                #expect(try Self.ids(client) == made && made.count == 1)
            }
        }
    }
}
