import Base
import Identity
import Messages
import Service
import Store
import TestSupport
import Testing

/// One credential tries to fill the store, or to keep others from working.
@Suite struct QuotaAttackTests {
    /// A change that adds to the store: a mail to an address nobody has.
    private static func grow(_ client: RawClient, _ number: Int, tenantID: Text = "acme") throws {
        let _: AccountsSendOobCodeResponse = try client.call(
            "postern.v1.Accounts/SendOobCode",
            AccountsSendOobCodeRequest(
                tenantID: tenantID, requestType: .emailSignin, email: Text("user-\(number)@example.com")))
    }

    static func withAcme(
        configure: @Sendable (inout Instance.Configuration) -> Void = { _ in },
        _ body: (TestServer) async throws -> Void
    ) async throws {
        try await withServer(configure: configure) { server in
            try server.makeTenant("acme", ["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
            try await body(server)
        }
    }

    @Test(.timeLimit(.minutes(3)))
    func `Nine thousand changes at once by one app key are mostly refused, by the defaults`() async throws {
        try await Self.withAcme { server in
            let client = try server.client(as: .app, of: "acme")
            let reasons = (0..<9_000).map { number in failure { try Self.grow(client, number) } }
            let passed = reasons.count { $0.reason.isEmpty }
            let refused = reasons.filter { $0.reason == "QUOTA_EXCEEDED" }
            // Four seconds' worth of 500 changes each: the clock stands still.
            #expect(passed == 2_000 && passed + refused.count == 9_000)
            let last = try #require(refused.last)
            #expect(last.code == .resourceExhausted && last.metadata("quota") == "caller_mutations")
            #expect(last.metadata("limit") == "2000" && last.metadata("required_role") == "project-admin")
            let wait = try #require(last.retryAfter)
            #expect(wait > .zero && wait < .seconds(1))
            // The usage tells of the refusals, and other credentials go on.
            #expect(try server.usage(of: "acme")["caller_mutations"]?.refused == Int64(refused.count))
            try Self.grow(try server.client(as: .app, of: "acme"), 9_001)
            server.clock.advance(by: .seconds(1))
            let later = (0..<600).count { number in failure { try Self.grow(client, 10_000 + number) }.reason.isEmpty }
            #expect(later == 500)
        }
    }

    @Test func `What a call adds is charged in bytes, and debt is made good before the next`() async throws {
        try await Self.withAcme { server in
            let client = try server.client(
                as: .app, of: "acme", quotas: CallerQuotas(writtenBytesPerHour: 3_600))
            var count = 0
            while failure({ try Self.grow(client, count) }).reason.isEmpty { count += 1 }
            let refused = failure { try Self.grow(client, count) }
            #expect((2...10).contains(count) && refused.metadata("quota") == "caller_written_bytes")
            // The quota is one byte a second.
            #expect(refused.retryAfter.map { $0 > .seconds(1) && $0 <= .hours(1) } == true)
            server.clock.advance(by: refused.retryAfter ?? .zero)
            try Self.grow(client, count)
        }
    }

    @Test func `Many keys of a tenant's admins have the rates of one together`() async throws {
        try await withServer(configure: { $0.limits.mutationsPerAdminPerSecond = 5 }) { server in
            try server.makeTenant("acme", ["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
            try server.makeTenant("beta")
            func change(_ client: RawClient, _ number: Int, tenantID: Text = "acme") throws {
                let _: UsersCreateResponse = try client.call(
                    "postern.v1.Users/Create", UsersCreateRequest(tenantID: tenantID, uid: Text("u\(number)")))
            }
            let admins = try (0..<10).map { _ in try server.client(as: .tenantAdmin, of: "acme") }
            let answers = (0..<40).map { number in failure { try change(admins[number % 10], number) } }
            // Four seconds' worth: the clock stands still.
            #expect(answers.count { $0.reason.isEmpty } == 20)
            #expect(answers.last?.reason == "QUOTA_EXCEEDED" && answers.last?.metadata("quota") == "caller_mutations")
            // The tenant's users and another tenant's admins go on, and so do calls that end something.
            try Self.grow(try server.client(as: .app, of: "acme"), 1)
            try change(try server.client(as: .tenantAdmin, of: "beta"), 1, tenantID: "beta")
            let _: UsersDeleteResponse = try admins[0].call(
                "postern.v1.Users/Delete", UsersDeleteRequest(tenantID: "acme", uid: "u0"))
            server.clock.advance(by: .seconds(2))
            try change(admins[1], 100)
            // A key with a higher quota may use it while the others wait.
            let quotas = CallerQuotas(mutationsPerSecond: 50)
            let more = try server.client(as: .tenantAdmin, of: "acme", quotas: quotas)
            server.clock.advance(by: .seconds(4))
            for number in 200..<260 { try change(more, number) }
        }
    }

    @Test func `A refused call computes no hash`() async throws {
        try await Self.withAcme { server in
            let client = try server.client(as: .app, of: "acme", quotas: CallerQuotas(mutationsPerSecond: 1))
            for number in 0..<4 { try Self.grow(client, number) }
            let before = server.project.passwords.computed.all.reduce(0) { $0 + $1.count }
            for number in 0..<20 {
                expectRefusal("QUOTA_EXCEEDED") {
                    let _: AccountsSignUpResponse = try client.call(
                        "postern.v1.Accounts/SignUp",
                        AccountsSignUpRequest(
                            tenantID: "acme", email: Text("new-\(number)@example.com"),
                            password: Secret("correct horse")))
                }
            }
            #expect(server.project.passwords.computed.all.reduce(0) { $0 + $1.count } == before)
        }
    }

    @Test func `Whoever used up the rate for growth can still end sessions and delete`() async throws {
        try await Self.withAcme { server in
            try server.updateTenant("acme", ["enable_anonymous_user"]) { $0.enableAnonymousUser = true }
            let client = try server.client(as: .app, of: "acme", quotas: CallerQuotas(mutationsPerSecond: 1))
            let users = try (0..<4).map { _ -> AccountsSignUpResponse in
                try client.call("postern.v1.Accounts/SignUp", AccountsSignUpRequest(tenantID: "acme"))
            }
            expectRefusal("QUOTA_EXCEEDED") { try Self.grow(client, 1) }
            let _: SessionsSignOutResponse = try client.call(
                "postern.v1.Sessions/SignOut",
                SessionsSignOutRequest(tenantID: "acme", refreshToken: users[0].tokens?.refreshToken ?? .empty))
            let _: AccountsDeleteResponse = try client.call(
                "postern.v1.Accounts/Delete",
                AccountsDeleteRequest(tenantID: "acme", idToken: users[1].tokens?.idToken ?? .empty))
        }
    }

    @Test func `A full tenant is refused what grows, alone, and can free room`() async throws {
        try await Self.withAcme { server in
            try server.makeTenant("other", ["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
            try server.updateTenant("acme", ["quotas.stored_bytes"]) {
                $0.quotas = TenantQuotas(storedBytes: 20_000)
            }
            let admin = try server.client(as: .tenantAdmin, of: "acme")
            let app = try server.client(as: .app, of: "acme")
            func create(_ number: Int) throws {
                let _: UsersCreateResponse = try admin.call(
                    "postern.v1.Users/Create", UsersCreateRequest(uid: Text("user-\(number)")))
            }
            var count = 0
            while failure({ try create(count) }).reason.isEmpty { count += 1 }
            let refused = failure { try create(count) }
            #expect(count > 5 && refused.metadata("quota") == "tenant_stored_bytes")
            #expect(refused.metadata("limit") == "20000" && refused.retryAfter == nil)
            let usage = try #require(try server.usage(of: "acme")["tenant_stored_bytes"])
            #expect(usage.used >= 20_000 && usage.used < 21_000 && usage.limit == 20_000 && usage.refused == 2)
            expectRefusal("QUOTA_EXCEEDED") { try Self.grow(app, 0) }
            // Neither keys made by a project-admin nor the project-admin pass the limit: room has to be made or given.
            expectRefusal("QUOTA_EXCEEDED") { try Self.grow(try server.connect(), 0) }
            try Self.grow(try server.connect(), 0, tenantID: "other")
            let _: UsersRevokeTokensResponse = try admin.call(
                "postern.v1.Users/RevokeTokens", UsersRevokeTokensRequest(uid: "user-0"))
            var disable = UsersUpdateRequest(uid: "user-0", updateMask: ProtobufFieldMask(paths: ["disabled"]))
            disable.disabled = true
            let _: UsersUpdateResponse = try admin.call("postern.v1.Users/Update", disable)
            for number in 0..<count {
                let _: UsersDeleteResponse = try admin.call(
                    "postern.v1.Users/Delete", UsersDeleteRequest(uid: Text("user-\(number)")))
            }
            try server.updateTenant("acme", ["quotas"]) { $0.quotas = TenantQuotas() }
            try create(0)
        }
    }

    @Test func `Only a project-admin sets quotas`() async throws {
        try await Self.withAcme { server in
            let admin = try server.client(as: .tenantAdmin, of: "acme")
            let paths: [Text] = [
                "quotas", "quotas.stored_bytes", "quotas.mutations_per_second", "quotas.anonymous_sign_ups_per_hour",
            ]
            for path in paths {
                let refused = failure {
                    try TestServer.updateTenant("acme", [path], by: admin) {
                        $0.quotas = TenantQuotas(
                            storedBytes: 1 << 40, mutationsPerSecond: 1 << 40, anonymousSignUpsPerHour: 1 << 40)
                    }
                }
                #expect(refused.reason == "INSUFFICIENT_PERMISSION", "\(path)")
                #expect(refused.metadata("required_role") == "project-admin")
                for value in [-1, Int64.min, Int64.max, (1 << 50) + 1] as [Int64] {
                    expectRefusal("INVALID_QUOTA") {
                        try server.updateTenant("acme", [path]) {
                            $0.quotas = TenantQuotas(
                                storedBytes: value, mutationsPerSecond: value, anonymousSignUpsPerHour: value)
                        }
                    }
                }
            }
            let who: ProjectWhoAmIResponse = try admin.call("postern.v1.Project/WhoAmI", ProjectWhoAmIRequest())
            expectRefusal("INSUFFICIENT_PERMISSION") {
                let _: ProjectUpdateApiKeyResponse = try admin.call(
                    "postern.v1.Project/UpdateApiKey",
                    ProjectUpdateApiKeyRequest(
                        apiKeyID: who.caller, updateMask: ProtobufFieldMask(paths: ["quotas"]),
                        quotas: CallerQuotas(mutationsPerSecond: 1 << 20)))
            }
        }
    }

    @Test func `A full tenant's settings are switched, and not made longer`() async throws {
        try await Self.withAcme { server in
            try server.updateTenant("acme", ["quotas.stored_bytes"]) { $0.quotas = TenantQuotas(storedBytes: 1) }
            let admin = try server.client(as: .tenantAdmin, of: "acme")
            let domains = (0..<20).map { Text("domain-\($0).example.com") }
            expectRefusal("QUOTA_EXCEEDED") {
                try TestServer.updateTenant("acme", ["allowed_continue_domains"], by: admin) {
                    $0.allowedContinueDomains = domains
                }
            }
            expectRefusal("QUOTA_EXCEEDED") {
                try TestServer.updateTenant("acme", ["disable_auth", "display_name"], by: admin) {
                    $0.displayName = "Acme"
                }
            }
            try TestServer.updateTenant("acme", ["disable_auth"], by: admin) { $0.disableAuth = true }
            try server.updateTenant("acme", ["quotas.stored_bytes"]) { $0.quotas = TenantQuotas(storedBytes: 0) }
            try TestServer.updateTenant("acme", ["display_name"], by: admin) { $0.displayName = "Acme" }
        }
    }

    @Test func `A raised quota binds the next call of an open connection`() async throws {
        try await Self.withAcme { server in
            let project = try server.connect()
            let made: ProjectCreateApiKeyResponse = try project.call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(
                    role: .app, scope: Scope(tenants: .tenantID("acme")),
                    quotas: CallerQuotas(mutationsPerSecond: 1)))
            let client = try server.connect(authenticated: false)
            client.apiKey = made.secretKey
            for number in 0..<4 { try Self.grow(client, number) }
            expectRefusal("QUOTA_EXCEEDED") { try Self.grow(client, 5) }
            let changed: ProjectUpdateApiKeyResponse = try project.call(
                "postern.v1.Project/UpdateApiKey",
                ProjectUpdateApiKeyRequest(
                    apiKeyID: made.apiKey?.apiKeyID ?? .empty, updateMask: ProtobufFieldMask(paths: ["quotas"]),
                    quotas: CallerQuotas(mutationsPerSecond: 100)))
            #expect(changed.apiKey?.quotas?.mutationsPerSecond == 100)
            server.clock.advance(by: .seconds(1))
            for number in 10..<60 { try Self.grow(client, number) }
        }
    }

    @Test func `Tenants for load tests have no rates, and a quota in bytes all the same`() async throws {
        try await withServer(configure: { $0.limits.mutationsPerCallerPerSecond = 1 }) { server in
            try server.makeTenant("load", ["synthetic", "enable_anonymous_user", "quotas"]) {
                $0.synthetic = true
                $0.enableAnonymousUser = true
                $0.quotas = TenantQuotas(storedBytes: 30_000, anonymousSignUpsPerHour: 1)
            }
            let client = try server.client(as: .app, of: "load")
            var refused = Failure(.ok, "", "")
            var count = 0
            while refused.reason.isEmpty, count < 1_000 {
                count += 1
                refused = failure {
                    let _: AccountsSignUpResponse = try client.call(
                        "postern.v1.Accounts/SignUp", AccountsSignUpRequest())
                }
            }
            #expect(count > 10 && refused.metadata("quota") == "tenant_stored_bytes")
        }
    }
}
