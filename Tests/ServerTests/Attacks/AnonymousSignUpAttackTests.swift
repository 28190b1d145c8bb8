import Base
import Identity
import Messages
import Service
import Store
import TestSupport
import Testing

/// Anonymous sign-ups prove nothing: one end user could make any number of accounts.
@Suite struct AnonymousSignUpAttackTests {
    private static func signUp(_ client: RawClient, from address: Text = .empty) throws {
        let _: AccountsSignUpResponse = try client.call(
            "postern.v1.Accounts/SignUp", AccountsSignUpRequest(endUserIP: address))
    }

    @Test func `An address has thirty anonymous sign-ups an hour, others have theirs`() async throws {
        try await withServer { server in
            try server.updateTenant("", ["enable_anonymous_user"]) { $0.enableAnonymousUser = true }
            let client = try server.client(as: .app, of: "", trustsEndUserIP: true)
            for _ in 0..<30 { try Self.signUp(client, from: "192.0.2.1") }
            let refused = failure { try Self.signUp(client, from: "192.0.2.1") }
            #expect(refused.reason == "QUOTA_EXCEEDED" && refused.retryAfter == .hours(1))
            #expect(refused.metadata("quota") == "address_anonymous_sign_ups")
            try Self.signUp(client, from: "192.0.2.2")
            server.clock.advance(by: .hours(1))
            try Self.signUp(client, from: "192.0.2.1")
            // A credential that is not trusted for it cannot name an address: nobody uses up another's limit.
            let untrusted = try server.client(as: .app, of: "")
            for _ in 0..<40 { try Self.signUp(untrusted, from: "192.0.2.3") }
            try Self.signUp(client, from: "192.0.2.3")
        }
    }

    @Test func `A tenant has its number of anonymous sign-ups an hour, which a project-admin raises`() async throws {
        try await withServer(configure: { $0.limits.anonymousSignUpsPerTenantAndHour = 50 }) { server in
            try server.updateTenant("", ["enable_anonymous_user"]) { $0.enableAnonymousUser = true }
            let client = try server.client(as: .app, of: "")
            for _ in 0..<50 { try Self.signUp(client) }
            let refused = failure { try Self.signUp(client) }
            #expect(refused.metadata("quota") == "tenant_anonymous_sign_ups" && refused.metadata("used") == "50")
            let usage = try #require(try server.usage(of: "")["tenant_anonymous_sign_ups"])
            #expect(usage.used == 50 && usage.limit == 50 && usage.refused == 1)
            try server.updateTenant("", ["quotas.anonymous_sign_ups_per_hour"]) {
                $0.quotas = TenantQuotas(anonymousSignUpsPerHour: 60)
            }
            for _ in 0..<10 { try Self.signUp(client) }
            expectRefusal("QUOTA_EXCEEDED") { try Self.signUp(client) }
            // The limit does not apply to sign-ups with an email.
            _ = try IdentityClient(server).signUp("ada@example.com")
        }
    }
}
