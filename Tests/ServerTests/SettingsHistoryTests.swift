import Base
import Messages
import Store
import TestSupport
import Testing

@testable import Identity

@Suite struct SettingsHistoryTests {
    @Test func `The history of the default pool names only the keys that its reader may list`() async throws {
        try await withServer { server in
            let root = try server.connect()
            let admin = try server.client(as: .tenantAdmin, of: "")
            try TestServer.updateTenant("", ["display_name"], by: root) { $0.displayName = "By the project" }
            try TestServer.updateTenant("", ["display_name"], by: admin) { $0.displayName = "By the pool" }
            let second = try server.client(as: .tenantAdmin, of: "")
            func callers(_ client: RawClient) throws -> [Text] {
                let history: AuditListSettingsChangesResponse = try client.call(
                    "postern.v1.Audit/ListSettingsChanges", AuditListSettingsChangesRequest())
                return history.events.prefix(2).map(\.caller)
            }
            let all = try callers(root)
            #expect(all.allSatisfy { !$0.isEmpty } && all[0] != all[1])
            #expect(try callers(admin) == [all[0], ""] && callers(second) == [all[0], ""])
        }
    }

    // MARK: Updates that change nothing

    private static func settings(_ client: RawClient, _ tenantID: Text) throws -> Messages.Tenant {
        let found: TenantsGetResponse = try client.call(
            "postern.v1.Tenants/Get", TenantsGetRequest(tenantID: tenantID))
        return try #require(found.tenant)
    }

    private static func changes(_ client: RawClient, _ tenantID: Text) throws -> [[Text]] {
        let history: AuditListSettingsChangesResponse = try client.call(
            "postern.v1.Audit/ListSettingsChanges", AuditListSettingsChangesRequest(tenantID: tenantID))
        return history.events.map { $0.settingsChange?.paths ?? [] }
    }

    @Test func `An update to the present values leaves revision, time and history as they are`() async throws {
        try await withServer { server in
            let client = try server.connect()
            try server.makeTenant("acme")
            try server.updateTenant("acme", ["display_name"]) { $0.displayName = "Acme" }
            let before = try Self.settings(client, "acme")
            server.clock.advance(by: .seconds(5))
            try server.updateTenant("acme", ["display_name", "password_policy"]) {
                $0.displayName = "Acme"
                // The same as none.
                $0.passwordPolicy = PasswordPolicy()
            }
            let after = try Self.settings(client, "acme")
            let history = try Self.changes(client, "acme")
            #expect(after == before && history == [["display_name"], []])
            // The revision over which it was decided is compared all the same.
            expectRefusal("REVISION_MISMATCH") { try Self.rename(client, to: "Acme", over: before.revision - 1) }
            try Self.rename(client, to: "Acme", over: before.revision)
            try server.updateTenant("acme", ["display_name", "recent_login_seconds"]) {
                $0.displayName = "Acme"
                $0.recentLoginSeconds = 90
            }
            let changed = try Self.settings(client, "acme")
            let longer = try Self.changes(client, "acme")
            #expect(changed.revision == before.revision + 1)
            #expect(longer == [["recent_login_seconds"], ["display_name"], []])
        }
    }

    /// A tenant from before there were lists allows every domain. An empty list allows none, and is the same value.
    @Test(arguments: [false, true])
    func `The first list of domains is a change, also an empty one`(ofMany: Bool) async throws {
        try await withServer { server in
            let client = try server.connect()
            try server.makeTenant("acme")
            try await server.project.store.write { transaction in
                var record = try #require(try transaction.get(Tables.tenants, TenantPrefix("acme")))
                record.tenant?.continueURLRule = .unspecified
                try transaction.put(Tables.tenants, TenantPrefix("acme"), record)
            }
            for _ in 0..<2 {
                if ofMany {
                    let _: TenantsUpdateManyResponse = try client.call(
                        "postern.v1.Tenants/UpdateMany",
                        TenantsUpdateManyRequest(
                            filter: TenantFilter(tenantIDPrefix: "acme"), tenant: Messages.Tenant(),
                            updateMask: ProtobufFieldMask(paths: ["allowed_continue_domains"])))
                } else {
                    try server.updateTenant("acme", ["allowed_continue_domains"]) { _ in }
                }
            }
            let settings = try Self.settings(client, "acme")
            let history = try Self.changes(client, "acme")
            #expect(settings.continueURLRule == .listed)
            #expect(history == [["allowed_continue_domains"], []])
        }
    }

    // MARK: The end of the events

    private static func history(_ client: RawClient, _ request: AuditListSettingsChangesRequest) throws -> (
        names: [Text], next: Text
    ) {
        let page: AuditListSettingsChangesResponse = try client.call("postern.v1.Audit/ListSettingsChanges", request)
        return (page.events.map { $0.settingsChange?.after?.displayName ?? .empty }, page.nextPageToken)
    }

    private static func rename(_ client: RawClient, to name: Text, over revision: Int64 = 0) throws {
        let _: TenantsUpdateResponse = try client.call(
            "postern.v1.Tenants/Update",
            TenantsUpdateRequest(
                tenantID: "acme", tenant: Messages.Tenant(displayName: name),
                updateMask: ProtobufFieldMask(paths: ["display_name"]), expectedRevision: revision))
    }

    @Test func `Changes whose events are past their retention go, oldest first, and the settings stay`() async throws {
        try await withServer { server in
            let client = try server.connect()
            try server.makeTenant("acme")
            try server.updateTenant("acme", ["event_retention_seconds"]) { $0.eventRetentionSeconds = 86_400 }
            for name in ["one", "two"] as [Text] { try Self.rename(client, to: name) }
            server.clock.advance(by: .hours(20))
            try Self.rename(client, to: "three")
            let first = try Self.history(client, AuditListSettingsChangesRequest(tenantID: "acme", pageSize: 2))
            #expect(first.names == ["three", "two"] && !first.next.isEmpty)

            // Twenty-five hours after the first changes, and five after the last.
            server.clock.advance(by: .hours(5))
            try await server.project.sweepForAll()
            let kept = try Self.history(client, AuditListSettingsChangesRequest(tenantID: "acme"))
            #expect(kept.names == ["three"] && kept.next.isEmpty)
            // The page that was to follow is one of changes that are gone.
            let gone = try Self.history(
                client, AuditListSettingsChangesRequest(tenantID: "acme", pageSize: 2, pageToken: first.next))
            #expect(gone.names.isEmpty && gone.next.isEmpty)

            server.clock.advance(by: .hours(25))
            try await server.project.sweepForAll()
            let empty = try Self.history(client, AuditListSettingsChangesRequest(tenantID: "acme"))
            #expect(empty.names.isEmpty && empty.next.isEmpty)
            let found: TenantsGetResponse = try client.call(
                "postern.v1.Tenants/Get", TenantsGetRequest(tenantID: "acme"))
            let tenant = try #require(found.tenant)
            #expect(tenant.displayName == "three" && tenant.revision > 1)
            // The revision counts on, and an older one is refused, though the history knows neither.
            expectRefusal("REVISION_MISMATCH") {
                try Self.rename(client, to: "four", over: tenant.revision - 1)
            }
            try Self.rename(client, to: "four", over: tenant.revision)
            let last = try Self.history(client, AuditListSettingsChangesRequest(tenantID: "acme"))
            #expect(last.names == ["four"])
        }
    }
}
