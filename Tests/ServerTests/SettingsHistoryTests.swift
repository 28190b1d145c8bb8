import Base
import Messages
import TestSupport
import Testing

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
}
