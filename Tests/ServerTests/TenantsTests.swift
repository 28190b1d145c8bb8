import Base
import Identity
import Messages
import Service
import Store
import TestSupport
import Testing

/// Tenants, their settings, and the record of what they refused.
@Suite struct TenantsTests {
    private static func create(
        _ client: RawClient, _ tenantID: Text, _ tenant: Messages.Tenant = Messages.Tenant(), paths: [Text] = []
    ) throws -> Messages.Tenant {
        let made: TenantsCreateResponse = try client.call(
            "postern.v1.Tenants/Create",
            TenantsCreateRequest(
                tenantID: tenantID, tenant: tenant, updateMask: ProtobufFieldMask(paths: paths)))
        return made.tenant ?? Messages.Tenant()
    }

    private static func get(_ client: RawClient, _ tenantID: Text) throws -> Messages.Tenant {
        let found: TenantsGetResponse = try client.call(
            "postern.v1.Tenants/Get", TenantsGetRequest(tenantID: tenantID))
        return found.tenant ?? Messages.Tenant()
    }

    // MARK: Coming and going

    @Test func aNewTenantHasPasswordsOnAndEverythingElseOff() async throws {
        try await withServer { server in
            let client = try server.connect()
            let made = try Self.create(client, "acme")
            // The default pool begins in the same way.
            for tenant in [made, try Self.get(client, "")] {
                #expect(tenant.allowPasswordSignup && tenant.enableEmailPrivacy)
                #expect(!tenant.enableAnonymousUser && !tenant.disableAuth && !tenant.synthetic)
                #expect(!tenant.enableEmailLinkSignin && !tenant.enablePhoneSignin)
                #expect((tenant.client?.permissions ?? ClientPermissions()) == ClientPermissions())
                #expect(tenant.refreshMode == .rotate && tenant.recentLoginSeconds == 300)
            }
            #expect(try Self.get(client, "acme") == made)
            #expect(try Self.create(client, "").tenantID.byteCount == 20)
        }
    }

    @Test(arguments: [
        "abc", "Acme", "ac me", "acme_1", "ümlaut", String(repeating: "x", count: 65), "a.b.c.d",
    ])
    func aWrongIdIsRefused(_ tenantID: String) async throws {
        try await withServer { server in
            let client = try server.connect()
            expectRefusal("INVALID_TENANT_ID") { _ = try Self.create(client, Text(tenantID)) }
        }
    }

    @Test func anIdIsNeverUsedAgain() async throws {
        try await withServer { server in
            let client = try server.connect()
            _ = try Self.create(client, "acme")
            expectRefusal("TENANT_ID_EXISTS") { _ = try Self.create(client, "acme") }
            let _: UsersCreateResponse = try client.call(
                "postern.v1.Users/Create", UsersCreateRequest(tenantID: "acme", uid: "u", email: "a@x.com"))
            let delete = TenantsDeleteRequest(tenantID: "acme", validateOnly: true)
            let _: TenantsDeleteResponse = try client.call("postern.v1.Tenants/Delete", delete)
            #expect(try Self.get(client, "acme").tenantID == "acme")
            let _: TenantsDeleteResponse = try client.call(
                "postern.v1.Tenants/Delete", TenantsDeleteRequest(tenantID: "acme"))
            #expect(Self.reasonOfGettingUser(client) == "TENANT_NOT_FOUND")
            expectRefusal("TENANT_ID_EXISTS") { _ = try Self.create(client, "acme") }
            expectRefusal("TENANT_NOT_FOUND") { _ = try Self.get(client, "acme") }
            // The tenant's rows are gone with it; TablePurgeTests looks at every table.
            let isLeft = try server.project.store.read { try $0.get(Tables.users, UserKey("acme", "u")) != nil }
            #expect(!isLeft)
        }
    }

    private static func reasonOfGettingUser(_ client: RawClient) -> String {
        failure {
            let _: UsersGetResponse = try client.call(
                "postern.v1.Users/Get", UsersGetRequest(tenantID: "acme", uid: "u"))
        }.reason
    }

    @Test func theDefaultPoolCannotBeDeleted() async throws {
        try await withServer { server in
            let client = try server.connect()
            let refused = failure {
                let _: TenantsDeleteResponse = try client.call("postern.v1.Tenants/Delete", TenantsDeleteRequest())
            }
            #expect(refused.reason == "INVALID_TENANT_ID")
        }
    }

    @Test func listingGoesThroughAllTenantsInPages() async throws {
        try await withServer { server in
            let client = try server.connect()
            for index in 10..<33 { _ = try Self.create(client, Text("tenant-\(index)")) }
            var ids: [Text] = []
            var token = Text.empty
            repeat {
                let page: TenantsListResponse = try client.call(
                    "postern.v1.Tenants/List", TenantsListRequest(pageSize: 5, pageToken: token))
                ids += page.tenants.map(\.tenantID)
                token = page.nextPageToken
            } while !token.isEmpty
            #expect(ids == [""] + (10..<33).map { Text("tenant-\($0)") })
        }
    }

    // MARK: Settings

    @Test func eachSettingIsChangedByItsPathAlone() async throws {
        let rows: [(Text, @Sendable (inout Messages.Tenant) -> Void)] = [
            ("display_name", { $0.displayName = "Acme" }), ("disable_auth", { $0.disableAuth = true }),
            ("allow_password_signup", { $0.allowPasswordSignup = false }),
            ("enable_anonymous_user", { $0.enableAnonymousUser = true }),
            ("enable_email_link_signin", { $0.enableEmailLinkSignin = true }),
            ("password_policy", { $0.passwordPolicy = PasswordPolicy(minLength: 12, requireDigit: true) }),
            ("enable_email_privacy", { $0.enableEmailPrivacy = false }), ("refresh_mode", { $0.refreshMode = .reuse }),
            ("session_idle_seconds", { $0.sessionIdleSeconds = 301 }),
            ("session_absolute_seconds", { $0.sessionAbsoluteSeconds = 302 }),
            ("recent_login_seconds", { $0.recentLoginSeconds = 31 }),
            (
                "guidance",
                { $0.guidance = Guidance(locale: "en", message: "Ask the desk.", helpURL: "https://x.example") }
            ),
            (
                "client.permissions.disabled_user_signup",
                { $0.client = ClientConfig(permissions: ClientPermissions(disabledUserSignup: true)) }
            ),
        ]
        try await withServer { server in
            let client = try server.connect()
            var expected = try Self.create(client, "acme")
            for (path, change) in rows {
                // The request has all changes, and its mask names one.
                var wanted = Messages.Tenant()
                for row in rows { row.1(&wanted) }
                change(&expected)
                expected.revision += 1
                let changed: TenantsUpdateResponse = try client.call(
                    "postern.v1.Tenants/Update",
                    TenantsUpdateRequest(
                        tenantID: "acme", tenant: wanted, updateMask: ProtobufFieldMask(paths: [path])))
                expected.updatedAtMicros = changed.tenant?.updatedAtMicros ?? 0
                #expect(changed.tenant == expected, "\(path)")
                #expect(try Self.get(client, "acme") == expected)
            }
        }
    }

    @Test func wrongSettingsChangeNothing() async throws {
        try await withServer { server in
            let client = try server.connect()
            let made = try Self.create(client, "acme")
            let rows: [(Messages.Tenant, [Text], String)] = [
                (Messages.Tenant(sessionIdleSeconds: 299), ["session_idle_seconds"], "INVALID_DURATION"),
                (Messages.Tenant(sessionIdleSeconds: 31_536_001), ["session_idle_seconds"], "INVALID_DURATION"),
                (Messages.Tenant(recentLoginSeconds: 29), ["recent_login_seconds"], "INVALID_DURATION"),
                (Messages.Tenant(), ["refresh_mode"], "INVALID_REFRESH_MODE"),
                (
                    Messages.Tenant(passwordPolicy: PasswordPolicy(minLength: 65)), ["password_policy"],
                    "INVALID_PASSWORD_POLICY"
                ),
                (Messages.Tenant(synthetic: true), ["synthetic"], "INVALID_UPDATE_MASK"),
                (Messages.Tenant(), ["tenant_id"], "INVALID_UPDATE_MASK"),
                (Messages.Tenant(), ["disable_auth", "disable_auth"], "INVALID_UPDATE_MASK"),
                (
                    Messages.Tenant(disableAuth: true, guidance: Guidance(helpURL: "http://x.example")),
                    ["disable_auth", "guidance"], "INVALID_GUIDANCE"
                ),
            ]
            for (tenant, paths, reason) in rows {
                let refused = failure {
                    let _: TenantsUpdateResponse = try client.call(
                        "postern.v1.Tenants/Update",
                        TenantsUpdateRequest(
                            tenantID: "acme", tenant: tenant, updateMask: ProtobufFieldMask(paths: paths)))
                }
                #expect(refused.reason == reason)
                #expect(try Self.get(client, "acme") == made)
            }
        }
    }

    // MARK: Refusals

    @Test func refusalsAreListedByTimeAndCountedByHour() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["client.permissions.disabled_user_signup"]) {
                $0.client = ClientConfig(permissions: ClientPermissions(disabledUserSignup: true))
            }
            var times: [Int64] = []
            for index in 0..<12 {
                times.append(server.clock.clock.now().microseconds)
                expectRefusal("ADMIN_RESTRICTED_OPERATION") { _ = try client.signUp(Text("u\(index)@x.com")) }
                server.clock.advance(by: .seconds(1_200))
            }
            func list(_ request: TenantsListDenialsRequest) throws -> TenantsListDenialsResponse {
                try client.client.call("postern.v1.Tenants/ListDenials", request)
            }
            let all = try list(TenantsListDenialsRequest())
            #expect(all.denials.map(\.sequence) == (1...12).reversed())
            #expect(all.counts.reduce(0) { $0 + $1.count } == 12 && all.counts.count >= 4)
            let some = try list(TenantsListDenialsRequest(fromMicros: times[3], toMicros: times[6]))
            #expect(some.denials.map(\.sequence) == [6, 5, 4])
            var sequences: [Int64] = []
            var token = Text.empty
            repeat {
                let page = try list(TenantsListDenialsRequest(pageSize: 5, pageToken: token))
                sequences += page.denials.map(\.sequence)
                token = page.nextPageToken
            } while !token.isEmpty
            #expect(sequences == (1...12).reversed())
        }
    }

    @Test func onlySoManyRefusalsAreKept() async throws {
        try await withServer(configure: {
            $0.limits.denialsKeptPerTenant = 20
            $0.limits.denialsRecordedPerSecond = 1_000
        }) { server in
            let client = try IdentityClient(server)
            try client.setTenant(["client.permissions.disabled_user_signup"]) {
                $0.client = ClientConfig(permissions: ClientPermissions(disabledUserSignup: true))
            }
            for _ in 0..<50 { _ = failure { _ = try client.signUp("u@x.com") } }
            let kept: TenantsListDenialsResponse = try client.client.call(
                "postern.v1.Tenants/ListDenials", TenantsListDenialsRequest(pageSize: 100))
            #expect(kept.denials.map(\.sequence) == (31...50).reversed())
        }
    }

    @Test func `Counts of refusals begin with the newest hour and say where they are cut`() async throws {
        try await withServer(configure: { $0.limits.pageSizeMax = 3 }) { server in
            let client = try IdentityClient(server)
            try client.setTenant(["client.permissions.disabled_user_signup"]) {
                $0.client = ClientConfig(permissions: ClientPermissions(disabledUserSignup: true))
            }
            var refusedAt: [Timestamp] = []
            for index in 0..<7 {
                refusedAt.append(server.clock.clock.now())
                expectRefusal("ADMIN_RESTRICTED_OPERATION") { _ = try client.signUp(Text("u\(index)@x.com")) }
                server.clock.advance(by: .seconds(3_600))
            }
            var request = TenantsListDenialsRequest(pageSize: 1)
            var pages: [[Int64]] = []
            repeat {
                let page: TenantsListDenialsResponse = try client.client.call(
                    "postern.v1.Tenants/ListDenials", request)
                pages.append(page.counts.map(\.hourStartMicros))
                request.toMicros = page.countsCutBeforeMicros
            } while request.toMicros > 0 && pages.count < 9
            let hour = Duration.hours(1).microseconds
            let wanted = refusedAt.reversed().map { $0.microseconds - $0.microseconds % hour }
            #expect(pages.map(\.count) == [3, 3, 1])
            #expect(pages.flatMap(\.self) == wanted)
        }
    }

    /// Everywhere else an empty id is the default pool. Here it is a request that lost its template.
    @Test func `Settings are not copied without the id of a template`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server).client
            let made: TenantsCreateResponse = try client.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
            for paths in [[], ["enable_anonymous_user"]] as [[Text]] {
                for isDry in [true, false] {
                    expectRefusal("TEMPLATE_NOT_FOUND") {
                        let _: TenantsCopySettingsResponse = try client.call(
                            "postern.v1.Tenants/CopySettings",
                            TenantsCopySettingsRequest(tenantID: "acme", paths: paths, validateOnly: isDry))
                    }
                }
            }
            let now: TenantsGetResponse = try client.call("postern.v1.Tenants/Get", TenantsGetRequest(tenantID: "acme"))
            #expect(now.tenant == made.tenant)
        }
    }
}
