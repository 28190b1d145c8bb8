import Base
import Identity
import Messages
import Service
import Store
import TestSupport
import Testing

/// One tenant's admin revokes without end. What ends something may go beyond the quotas, and leaves rows behind.
@Suite struct QuotaReserveAttackTests {
    private static func revoke(_ client: RawClient, _ uid: Text = "user-0") throws {
        let _: UsersRevokeTokensResponse = try client.call(
            "postern.v1.Users/RevokeTokens", UsersRevokeTokensRequest(tenantID: "acme", uid: uid))
    }

    @Test func `Revoking without end fills an eighth beyond the tenant's bytes, and deleting goes on`() async throws {
        try await QuotaAttackTests.withAcme(configure: { $0.limits.tenantReserveMin = 1_000 }) { server in
            let admin = try server.client(as: .tenantAdmin, of: "acme")
            for number in 0..<3 {
                let _: UsersCreateResponse = try admin.call(
                    "postern.v1.Users/Create", UsersCreateRequest(uid: Text("user-\(number)")))
            }
            try server.updateTenant("acme", ["quotas.stored_bytes"]) { $0.quotas = TenantQuotas(storedBytes: 16_000) }
            var count = 0
            while count < 1_000, failure({ try Self.revoke(admin) }).reason.isEmpty {
                count += 1
                server.clock.advance(by: .seconds(1))
            }
            let refused = failure { try Self.revoke(admin) }
            #expect(count > 5 && refused.metadata("quota") == "tenant_stored_bytes", "\(count)")
            #expect(refused.metadata("limit") == "18000")
            let used = try #require(try server.usage(of: "acme")["tenant_stored_bytes"]).used
            #expect(used >= 18_000 && used < 19_000)
            let _: UsersDeleteResponse = try admin.call(
                "postern.v1.Users/Delete", UsersDeleteRequest(tenantID: "acme", uid: "user-1"))
            // The operator revokes whatever the tenant's admins have done.
            try Self.revoke(try server.connect())
        }
    }

    private static func storedEvents(_ server: TestServer) throws -> Int64 {
        let usage: TenantsGetUsageResponse = try server.connect().call(
            "postern.v1.Tenants/GetUsage", TenantsGetUsageRequest(tenantID: "acme"))
        return usage.storedEvents
    }

    /// Deleting users leaves more behind than it frees, once the users are gone.
    @Test func `A tenant that is full of events gets room by a retention, which its admin may not set`() async throws {
        try await QuotaAttackTests.withAcme { server in
            let admin = try server.client(as: .tenantAdmin, of: "acme")
            try server.updateTenant("acme", ["quotas.stored_bytes"]) { $0.quotas = TenantQuotas(storedBytes: 30_000) }
            func create(_ number: Int) throws {
                let _: UsersCreateResponse = try admin.call(
                    "postern.v1.Users/Create", UsersCreateRequest(uid: Text("user-\(number)")))
            }
            var count = 0
            while count < 1_000, failure({ try create(count) }).reason.isEmpty {
                let _: UsersDeleteResponse = try admin.call(
                    "postern.v1.Users/Delete", UsersDeleteRequest(uid: Text("user-\(count)")))
                count += 1
            }
            let refused = failure { try create(count) }
            #expect(count > 5 && refused.metadata("quota") == "tenant_stored_bytes", "\(count)")
            #expect(refused.message.contains("event_retention_seconds"))
            // Two for each user, and one for each change of the tenant.
            #expect(try Self.storedEvents(server) == Int64(2 * count + 2))
            server.clock.advance(by: .hours(48))
            expectRefusal("INSUFFICIENT_PERMISSION") {
                try TestServer.updateTenant("acme", ["event_retention_seconds"], by: admin) {
                    $0.eventRetentionSeconds = 86_400
                }
            }
            try server.updateTenant("acme", ["event_retention_seconds"]) { $0.eventRetentionSeconds = 86_400 }
            await server.project.sweep()
            #expect(try Self.storedEvents(server) < 10)
            try create(count)
        }
    }

    @Test func `A provider of a full tenant can be switched off, but not enlarged`() async throws {
        try await QuotaAttackTests.withAcme { server in
            let admin = try server.client(as: .tenantAdmin, of: "acme")
            let provider = Provider(providerID: "google.com", enabled: true, clientID: "client")
            let _: ProvidersCreateResponse = try admin.call(
                "postern.v1.Providers/Create", ProvidersCreateRequest(tenantID: "acme", provider: provider))
            func update(_ paths: [Text], _ wanted: Provider) throws {
                let _: ProvidersUpdateResponse = try admin.call(
                    "postern.v1.Providers/Update",
                    ProvidersUpdateRequest(
                        tenantID: "acme", provider: wanted, updateMask: ProtobufFieldMask(paths: paths)))
            }
            try server.updateTenant("acme", ["quotas.stored_bytes"]) { $0.quotas = TenantQuotas(storedBytes: 1) }
            let on = Provider(providerID: "google.com", enabled: true)
            let long = Provider(
                providerID: "google.com", additionalAudiences: [Text(String(repeating: "a", count: 500))])
            expectRefusal("QUOTA_EXCEEDED") { try update(["enabled"], on) }
            expectRefusal("QUOTA_EXCEEDED") { try update(["additional_audiences"], long) }
            expectRefusal("QUOTA_EXCEEDED") { try update(["enabled", "additional_audiences"], long) }
            try update(["enabled"], Provider(providerID: "google.com"))
        }
    }

    @Test func `Revoking without end spends a reserve of bytes in an hour`() async throws {
        try await QuotaAttackTests.withAcme { server in
            let quotas = CallerQuotas(mutationsPerSecond: 1_000, writtenBytesPerHour: 3_600)
            let admin = try server.client(as: .tenantAdmin, of: "acme", quotas: quotas)
            for number in 0..<2 {
                let _: UsersCreateResponse = try admin.call(
                    "postern.v1.Users/Create", UsersCreateRequest(uid: Text("user-\(number)")))
            }
            var count = 0
            while count < 1_000, failure({ try Self.revoke(admin) }).reason.isEmpty {
                count += 1
                // A clock that goes on fills the bucket by less than a byte each time.
                server.clock.advance(by: .microseconds(1))
            }
            let refused = failure { try Self.revoke(admin) }
            #expect((5...60).contains(count) && refused.metadata("quota") == "caller_written_bytes", "\(count)")
            let _: UsersDeleteResponse = try admin.call(
                "postern.v1.Users/Delete", UsersDeleteRequest(tenantID: "acme", uid: "user-1"))
            try Self.revoke(try server.client(as: .tenantAdmin, of: "acme"))
            // The deletion added an event.
            let wait = failure { try Self.revoke(admin) }.retryAfter
            server.clock.advance(by: try #require(wait))
            try Self.revoke(admin)
        }
    }
}
