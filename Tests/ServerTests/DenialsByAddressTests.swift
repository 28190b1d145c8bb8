import Base
import Crypto
import Identity
import Messages
import Store
import TestSupport
import Testing

/// Refusals of all tenants, and refusals by email address.
@Suite struct DenialsByAddressTests {
    @Test func whoWasRefusedIsFoundByWhoeverHasTheAddress() async throws {
        try await withServer { server in
            let client = try server.connect()
            for tenantID in ["acme", "beta", "gone"] as [Text] {
                let _: TenantsCreateResponse = try client.call(
                    "postern.v1.Tenants/Create",
                    TenantsCreateRequest(
                        tenantID: tenantID,
                        tenant: Messages.Tenant(
                            client: ClientConfig(permissions: ClientPermissions(disabledUserSignup: true))),
                        updateMask: ProtobufFieldMask(paths: ["client.permissions.disabled_user_signup"])))
                for email in ["Ann@example.com", "bob@example.com", "ann@example.com"] as [Text] {
                    expectRefusal("ADMIN_RESTRICTED_OPERATION") {
                        let _: AccountsSignUpResponse = try client.call(
                            "postern.v1.Accounts/SignUp",
                            AccountsSignUpRequest(tenantID: tenantID, email: email, password: Secret("secret"))
                        )
                    }
                }
            }
            let _: TenantsDeleteResponse = try client.call(
                "postern.v1.Tenants/Delete", TenantsDeleteRequest(tenantID: "gone"))
            let found: TenantsListDenialsResponse = try client.call(
                "postern.v1.Tenants/ListDenials", TenantsListDenialsRequest(tenantID: "acme", email: "ANN@example.com"))
            #expect(found.denials.map(\.sequence) == [3, 1])
            expectRefusal("INVALID_EMAIL") {
                let _: TenantsListDenialsResponse = try client.call(
                    "postern.v1.Tenants/ListDenials", TenantsListDenialsRequest(tenantID: "acme", email: "ann"))
            }
            let quoted = try #require(found.denials.last).decisionID
            try Self.expectFound(byDecision: quoted, client)
            for (email, expected) in [
                ("", ["acme 3", "acme 2", "acme 1", "beta 3", "beta 2", "beta 1"]),
                ("ann@example.com", ["acme 3", "acme 1", "beta 3", "beta 1"]), ("eve@example.com", []),
            ] as [(Text, [String])] {
                for size in [1, 2, 3, 100] as [Int32] {
                    #expect(try Self.allDenials(client, email: email, size: size) == expected, "\(email) by \(size)")
                }
            }
        }
    }

    /// Addresses can't be tried against the hashes with what lies in the store. Servers before this one hashed under
    /// the tenant's secret alone, and their refusals are still found.
    @Test func hashesNeedMoreThanTheStore() async throws {
        try await withServer { server in
            let client = try server.connect()
            try server.makeTenant("acme")
            try server.updateTenant("acme", ["client.permissions.disabled_user_signup"]) {
                $0.client = ClientConfig(permissions: ClientPermissions(disabledUserSignup: true))
            }
            expectRefusal("ADMIN_RESTRICTED_OPERATION") {
                let _: AccountsSignUpResponse = try client.call(
                    "postern.v1.Accounts/SignUp",
                    AccountsSignUpRequest(tenantID: "acme", email: "ann@example.com", password: Secret("secret")))
            }
            let request = TenantsListDenialsRequest(tenantID: "acme", email: "ann@example.com")
            let found: TenantsListDenialsResponse = try client.call("postern.v1.Tenants/ListDenials", request)
            var denial = try #require(found.denials.first)
            let stored = try server.project.store.read { try $0.get(Tables.tenants, TenantPrefix("acme")) }
            let tenantKey = HMACKey(Secret(try #require(stored).secret))
            let hashOfOlderServers = tenantKey.tag(of: [UInt8]("ann@example.com".utf8))
            #expect(denial.identifierHash.count == 32 && denial.identifierHash != hashOfOlderServers)
            denial.identifierHash = hashOfOlderServers
            denial.sequence += 1
            let older = denial
            try await server.project.store.write {
                try $0.put(Tables.denials, SequenceKey("acme", older.sequence), older)
            }
            let both: TenantsListDenialsResponse = try client.call("postern.v1.Tenants/ListDenials", request)
            #expect(both.denials.map(\.sequence) == [older.sequence, older.sequence - 1])
        }
    }

    /// The first refusal of acme has the decision id.
    private static func expectFound(byDecision quoted: Text, _ client: RawClient) throws {
        let byDecision: TenantsListDenialsResponse = try client.call(
            "postern.v1.Tenants/ListDenials", TenantsListDenialsRequest(tenantID: "acme", decisionID: quoted))
        #expect(byDecision.denials.map(\.sequence) == [1])
        let inAll: TenantsListAllDenialsResponse = try client.call(
            "postern.v1.Tenants/ListAllDenials", TenantsListAllDenialsRequest(decisionID: quoted))
        #expect(inAll.denials.map(\.denial?.decisionID) == [quoted])
        for (email, decision) in [("bob@example.com", quoted), ("", "nobody")] as [(Text, Text)] {
            let none: TenantsListDenialsResponse = try client.call(
                "postern.v1.Tenants/ListDenials",
                TenantsListDenialsRequest(tenantID: "acme", email: email, decisionID: decision))
            #expect(none.denials.isEmpty)
        }
    }

    private static func allDenials(_ client: RawClient, email: Text, size: Int32) throws -> [String] {
        var found: [String] = []
        var token = Text.empty
        repeat {
            let page: TenantsListAllDenialsResponse = try client.call(
                "postern.v1.Tenants/ListAllDenials",
                TenantsListAllDenialsRequest(pageSize: size, pageToken: token, email: email))
            #expect(page.denials.count <= size)
            found += page.denials.map { "\($0.tenantID) \($0.denial?.sequence ?? 0)" }
            token = page.nextPageToken
        } while !token.isEmpty
        return found
    }
}
