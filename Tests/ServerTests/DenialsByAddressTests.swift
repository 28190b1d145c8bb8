import Base
import Messages
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
