import Base
import Messages
import Synchronization
import TestSupport
import Testing

@testable import Identity
@testable import Store

/// A tenant that has lost the sum of its space.
@Suite struct LostUsageTests {
    private static func createUser(_ uid: Text, _ client: RawClient) throws {
        let _: UsersCreateResponse = try client.call(
            "postern.v1.Users/Create", UsersCreateRequest(tenantID: "acme", uid: uid))
    }

    private static func userCount(_ client: RawClient) throws -> Int64 {
        let response: UsersCountResponse = try client.call(
            "postern.v1.Users/Count", UsersCountRequest(tenantID: "acme"))
        return response.count
    }

    private static func usage(_ client: RawClient) throws -> TenantsGetUsageResponse {
        try client.call("postern.v1.Tenants/GetUsage", TenantsGetUsageRequest(tenantID: "acme"))
    }

    @Test func `A tenant's quota does not begin anew with a sum that is lost`() async throws {
        let lineCount = Atomic(0)
        let log = Log(level: .warning) { line in
            let isOfSum = String(decoding: line, as: UTF8.self).contains("the sum of a tenant's space was lost")
            if isOfSum { lineCount.add(1, ordering: .relaxed) }
        }
        try await withServer(log: log) { server in
            let client = try server.connect()
            let _: TenantsCreateResponse = try client.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
            for uid in ["ann", "bob"] as [Text] { try Self.createUser(uid, client) }
            try await server.project.store.write { transaction in
                _ = try transaction.delete(Schema.tenantUsage, TenantPrefix("acme"))
            }
            try Self.createUser("carl", client)
            await server.project.sweep()
            #expect(try Self.userCount(client) == 3)
            let counted = try server.project.store.read { try $0.countedUsage(ofTenant: "acme") }
            #expect(counted.rowCount > 3)
            #expect(try Self.usage(client).storedRows == counted.rowCount)
            await server.project.sweep()
            #expect(lineCount.load(ordering: .relaxed) == 1)
        }
    }
}
