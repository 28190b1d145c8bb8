import Base
import Identity
import Messages
import Rules
import Service
import Store
import TestSupport
import Testing

/// Settings of many tenants, and their history.
@Suite struct ManyTenantsTests {
    private static func create(
        _ client: RawClient, _ tenantID: Text, template: Text = .empty, paths: [Text] = [],
        _ fill: (inout Messages.Tenant) -> Void = { _ in }
    ) throws -> Messages.Tenant {
        var tenant = Messages.Tenant()
        fill(&tenant)
        let made: TenantsCreateResponse = try client.call(
            "postern.v1.Tenants/Create",
            TenantsCreateRequest(
                tenantID: tenantID, tenant: tenant, updateMask: ProtobufFieldMask(paths: paths),
                templateTenantID: template))
        return made.tenant ?? Messages.Tenant()
    }

    private static func update(
        _ client: RawClient, _ tenantID: Text, _ paths: [Text], expected: Int64 = 0,
        _ fill: (inout Messages.Tenant) -> Void
    ) throws -> Messages.Tenant {
        var tenant = Messages.Tenant()
        fill(&tenant)
        let changed: TenantsUpdateResponse = try client.call(
            "postern.v1.Tenants/Update",
            TenantsUpdateRequest(
                tenantID: tenantID, tenant: tenant, updateMask: ProtobufFieldMask(paths: paths),
                expectedRevision: expected))
        return changed.tenant ?? Messages.Tenant()
    }

    private static func history(
        _ client: RawClient, _ tenantID: Text, pageSize: Int32 = 0, token: Text = .empty
    ) throws -> AuditListSettingsChangesResponse {
        try client.call(
            "postern.v1.Audit/ListSettingsChanges",
            AuditListSettingsChangesRequest(tenantID: tenantID, pageSize: pageSize, pageToken: token))
    }

    private static func updateMany(
        _ client: RawClient, _ filter: TenantFilter?, all: Bool = false, size: Int32 = 0, token: Text = .empty,
        validateOnly: Bool = false
    ) throws -> TenantsUpdateManyResponse {
        try client.call(
            "postern.v1.Tenants/UpdateMany",
            TenantsUpdateManyRequest(
                pageSize: size, pageToken: token, filter: filter, allTenants: all,
                tenant: Messages.Tenant(enableAnonymousUser: true),
                updateMask: ProtobufFieldMask(paths: ["enable_anonymous_user"]), validateOnly: validateOnly))
    }

    @Test func theHistoryTellsWhoChangedWhatFromWhatToWhat() async throws {
        try await withServer { server in
            let client = try server.connect()
            _ = try Self.create(client, "acme", paths: ["display_name"]) { $0.displayName = "Acme" }
            // Other events in between do not hide the change.
            for index in 0..<30 {
                let _: UsersCreateResponse = try client.call(
                    "postern.v1.Users/Create", UsersCreateRequest(tenantID: "acme", uid: Text("u\(index)")))
            }
            server.clock.advance(by: .seconds(5))
            let changed = try Self.update(client, "acme", ["display_name", "refresh_mode", "quotas.stored_bytes"]) {
                $0.displayName = "Acme Corp"
                $0.refreshMode = .rotate
                $0.quotas = TenantQuotas(storedBytes: 1_000_000)
            }
            let events = try Self.history(client, "acme").events
            #expect(events.map(\.kind) == [.tenantUpdated, .tenantCreated])
            let event = try #require(events.first)
            let change = try #require(event.settingsChange)
            #expect(event.timeMicros == changed.updatedAtMicros && !event.caller.isEmpty)
            // Settings that did not change are not listed.
            #expect(change.paths == ["display_name", "quotas.stored_bytes"] && change.revision == 2)
            #expect(change.before?.displayName == "Acme" && change.after?.displayName == "Acme Corp")
            #expect(change.before?.quotas?.storedBytes == 0 && change.after?.quotas?.storedBytes == 1_000_000)
            #expect(events.last?.settingsChange?.after?.displayName == "Acme")
            // The log says the same.
            let listed: AuditListEventsResponse = try client.call(
                "postern.v1.Audit/ListEvents",
                AuditListEventsRequest(tenantID: "acme", filter: EventFilter(kinds: [.tenantUpdated])))
            #expect(listed.events == [event])
        }
    }

    @Test func theHistoryIsReadInPagesToItsEnd() async throws {
        try await withServer { server in
            let client = try server.connect()
            _ = try Self.create(client, "acme")
            for index in 0..<12 {
                _ = try Self.update(client, "acme", ["display_name"]) { $0.displayName = Text("name \(index)") }
            }
            var revisions: [Int64] = []
            var token = Text.empty
            repeat {
                let page = try Self.history(client, "acme", pageSize: 5, token: token)
                #expect(page.events.count <= 5)
                revisions += page.events.compactMap(\.settingsChange?.revision)
                token = page.nextPageToken
            } while !token.isEmpty
            #expect(revisions == Array((1...13).reversed()))
            expectRefusal("INVALID_PAGE_TOKEN") { _ = try Self.history(client, "", pageSize: 5, token: "AA") }
        }
    }

    @Test func aPageOfTheHistoryIsBoundedByWhatItTells() async throws {
        try await withServer { server in
            let client = try server.connect()
            _ = try Self.create(client, "acme")
            for index in 0..<40 {
                let domains = (0..<50).map { "a\(index).b\($0)." + String(repeating: "long-name.", count: 23) + "org" }
                _ = try Self.update(client, "acme", ["allowed_continue_domains"]) {
                    $0.allowedContinueDomains = domains.map { Text($0) }
                }
            }
            var (count, pages, token) = (0, 0, Text.empty)
            repeat {
                let page = try Self.history(client, "acme", pageSize: 1_000, token: token)
                #expect(page.encoded().count < 320 * 1024)
                (count, pages, token) = (count + page.events.count, pages + 1, page.nextPageToken)
            } while !token.isEmpty && pages < 100
            #expect(count == 41 && pages > 2)
        }
    }

    @Test func theHistoryEndsWhereTheLogWasCut() async throws {
        try await withServer { server in
            let client = try server.connect()
            _ = try Self.create(client, "acme")
            for name in ["one", "two"] as [Text] {
                _ = try Self.update(client, "acme", ["display_name"]) { $0.displayName = name }
            }
            let now = server.project.clock.now()
            try await server.project.store.write { transaction in
                try transaction.deleteEvents(tenant: "acme", limit: 2, now: now) { _ in true }
            }
            let page = try Self.history(client, "acme")
            #expect(page.events.map { $0.settingsChange?.after?.displayName } == ["two"])
            #expect(page.nextPageToken.isEmpty)
        }
    }

    @Test func noCodeOfATestNumberIsInTheHistory() async throws {
        try await withServer { server in
            let client = try server.connect()
            _ = try Self.create(client, "acme")
            _ = try Self.update(client, "acme", ["test_phone_numbers"]) {
                $0.testPhoneNumbers = [TestPhoneNumber(phoneNumber: "+14155550123", code: "314159")]
            }
            let event = try #require(try Self.history(client, "acme").events.first)
            #expect(event.settingsChange?.after?.testPhoneNumbers.map(\.phoneNumber) == ["+14155550123"])
            let stored = try server.project.store.read { transaction in
                var payloads: [UInt8] = []
                try transaction.scanEvents(tenant: "acme") { event in
                    payloads += event.payload
                    return true
                }
                return payloads
            }
            #expect(!stored.contains([UInt8]("314159".utf8)))
        }
    }

    @Test func anUpdateOverAnotherRevisionIsRefused() async throws {
        try await withServer { server in
            let client = try server.connect()
            _ = try Self.create(client, "acme")
            _ = try Self.update(client, "acme", ["display_name"], expected: 1) { $0.displayName = "one" }
            let refused = failure {
                _ = try Self.update(client, "acme", ["display_name"], expected: 1) { $0.displayName = "two" }
            }
            #expect(refused.reason == "REVISION_MISMATCH")
            #expect(refused.metadata.contains(Failure.Entry("revision", "2")))
        }
    }

    // MARK: Templates

    @Test func aTemplateGivesItsSettingsAndNothingThatIsItsOwn() async throws {
        try await withServer { server in
            let client = try server.connect()
            let template = try Self.create(
                client, "template",
                paths: [
                    "display_name", "enable_anonymous_user", "test_phone_numbers", "quotas", "suspension_reason",
                    "password_policy", "client.permissions.disabled_user_signup",
                ]
            ) {
                $0.displayName = "Template"
                $0.enableAnonymousUser = true
                $0.testPhoneNumbers = [TestPhoneNumber(phoneNumber: "+14155550123", code: "314159")]
                $0.quotas = TenantQuotas(storedBytes: 5_000_000)
                $0.suspensionReason = "not paid"
                $0.passwordPolicy = PasswordPolicy(minLength: 12)
                $0.client = ClientConfig(permissions: ClientPermissions(disabledUserSignup: true))
            }
            let made = try Self.create(client, "acme", template: "template", paths: ["enable_anonymous_user"])
            // The settings in the request override those of the template.
            #expect(!made.enableAnonymousUser && made.passwordPolicy == template.passwordPolicy)
            #expect(made.quotas == template.quotas && made.client?.permissions?.disabledUserSignup == true)
            #expect(made.displayName.isEmpty && made.testPhoneNumbers.isEmpty && made.suspensionReason.isEmpty)
            #expect(made.revision == 1)
            expectRefusal("TEMPLATE_NOT_FOUND") { _ = try Self.create(client, "other", template: "nobody") }
            let copy = TenantsCopySettingsRequest(tenantID: "acme", templateTenantID: "template")
            let copied: TenantsCopySettingsResponse = try client.call("postern.v1.Tenants/CopySettings", copy)
            #expect(copied.tenant?.enableAnonymousUser == true && copied.tenant?.displayName.isEmpty == true)
            let change = try Self.history(client, "acme").events.first?.settingsChange
            #expect(change?.paths == ["enable_anonymous_user"])
            expectRefusal("INVALID_UPDATE_MASK") {
                let wrong = TenantsCopySettingsRequest(
                    tenantID: "acme", templateTenantID: "template", paths: ["test_phone_numbers"])
                let _: TenantsCopySettingsResponse = try client.call("postern.v1.Tenants/CopySettings", wrong)
            }
        }
    }

    // MARK: Many

    @Test func manyTenantsAreChangedInSlicesAndNotTwice() async throws {
        try await withServer { server in
            let client = try server.connect()
            for index in 100..<230 {
                _ = try Self.create(client, Text("shop-\(index)"), paths: ["enable_anonymous_user"]) {
                    $0.enableAnonymousUser = index % 10 == 0
                }
            }
            _ = try Self.create(client, "acme")
            let filter = TenantFilter(tenantIDPrefix: "shop-")
            var results: [TenantUpdateResult] = []
            for validateOnly in [true, false, false] {
                results = []
                var token = Text.empty
                repeat {
                    let page = try Self.updateMany(
                        client, filter, size: 60, token: token, validateOnly: validateOnly)
                    #expect(page.results.count <= 60)
                    results += page.results
                    token = page.nextPageToken
                } while !token.isEmpty
                #expect(results.map(\.tenantID) == (100..<230).map { Text("shop-\($0)") })
                let changedCount = results.count { $0.change != nil }
                let found: TenantsListResponse = try client.call(
                    "postern.v1.Tenants/List",
                    TenantsListRequest(
                        pageSize: 1_000,
                        filter: TenantFilter(
                            settings: Messages.Tenant(enableAnonymousUser: true),
                            settingsMask: ProtobufFieldMask(paths: ["enable_anonymous_user"]))))
                if validateOnly { #expect(changedCount == 117 && found.tenants.count == 13) }
                if !validateOnly { #expect(found.tenants.count == 130) }
            }
            // The second time there was nothing to do.
            #expect(results.allSatisfy { $0.change == nil })
            #expect(try Self.history(client, "shop-101").events.count == 2)
            #expect(try Self.history(client, "shop-110").events.count == 1)
        }
    }

    @Test func everyTenantIsMeantOnlyWhereTheRequestSaysSo() async throws {
        try await withServer { server in
            let client = try server.connect()
            expectRefusal("INVALID_QUERY") { _ = try Self.updateMany(client, nil) }
            expectRefusal("INVALID_QUERY") { _ = try Self.updateMany(client, TenantFilter()) }
            expectRefusal("INVALID_QUERY") {
                _ = try Self.updateMany(client, TenantFilter(tenantIDPrefix: "a"), all: true)
            }
            expectRefusal("INVALID_QUERY") {
                let long = Text(String(repeating: "x", count: Values.tenantIDByteCountMax + 1))
                _ = try Self.updateMany(client, TenantFilter(tenantIDPrefix: long))
            }
            let max = Int32(server.project.limits.administration.tenantsUpdatedPerCallMax)
            expectRefusal("INVALID_PAGE_SIZE") { _ = try Self.updateMany(client, nil, all: true, size: max + 1) }
            #expect(try Self.updateMany(client, nil, all: true, size: max).results.map(\.tenantID) == [""])
            expectRefusal("INVALID_UPDATE_MASK") {
                let wrong = TenantFilter(
                    settings: Messages.Tenant(), settingsMask: ProtobufFieldMask(paths: ["synthetic"]))
                _ = try Self.updateMany(client, wrong)
            }
        }
    }

    /// With the token of a dry run the real run would begin in the middle.
    @Test func aDryRunsTokenIsGoodForThatAlone() async throws {
        try await withServer { server in
            let client = try server.connect()
            for index in 0..<4 { _ = try Self.create(client, Text("shop-\(index)")) }
            let filter = TenantFilter(tenantIDPrefix: "shop-")
            let token = try Self.updateMany(client, filter, size: 2, validateOnly: true).nextPageToken
            #expect(!token.isEmpty)
            expectRefusal("INVALID_PAGE_TOKEN") { _ = try Self.updateMany(client, filter, size: 2, token: token) }
        }
    }
}
