import Base
import Messages
import Testing

@testable import Rules

@Suite struct CallerTests {
    private func caller(_ role: Role, _ tenants: Scope.Tenants? = .all(true), trusted: Bool = false) -> Caller {
        Caller(ApiKey(apiKeyID: "k", role: role, scope: Scope(tenants: tenants), trustedEndUserIP: trusted))
    }

    private static let roles: [Role] = [.verifier, .app, .tenantAdmin, .projectAdmin]

    @Test func aRoleIncludesTheLowerOnes() {
        for (height, role) in Self.roles.enumerated() {
            for (needed, other) in Self.roles.enumerated() {
                #expect(caller(role).has(other) == (height >= needed))
                let failure = failure { try caller(role).require(other) }
                #expect((failure == nil) == (height >= needed))
                if let failure {
                    #expect(failure.code == .permissionDenied && failure.reason == "INSUFFICIENT_PERMISSION")
                    #expect(failure.metadata == [.init("required_role", other.name), .init("role", role.name)])
                }
            }
            #expect(caller(role).has(.any))
        }
    }

    @Test func aKeyOfAllTenantsMeansTheOneThatIsNamed() throws {
        #expect(try caller(.app).tenant(requested: "acme") == "acme")
        #expect(try caller(.app).tenant(requested: "") == "")
        #expect(caller(.app).tenantID == nil)
    }

    @Test func aKeyOfOneTenantReachesNoOther() throws {
        let bound = caller(.tenantAdmin, .tenantID("acme"))
        #expect(try bound.tenant(requested: "acme") == "acme")
        #expect(try bound.tenant(requested: "") == "acme")
        for other: Text in ["acm", "acme2", "ACME", "acme "] {
            #expect(reason { _ = try bound.tenant(requested: other) } == "INSUFFICIENT_PERMISSION")
        }
    }

    @Test func aKeyOfTheDefaultPoolIsNotOneOfAllTenants() throws {
        let bound = caller(.tenantAdmin, .tenantID(""))
        #expect(bound.tenantID == "")
        #expect(try bound.tenant(requested: "") == "")
        #expect(reason { _ = try bound.tenant(requested: "acme") } == "INSUFFICIENT_PERMISSION")
    }

    @Test func rolesHaveTheirNames() {
        #expect(Self.roles.map(\.name) == ["verifier", "app", "tenant-admin", "project-admin"])
        #expect(Role.any.name == "any" && Role.unspecified.name == "none")
    }
}
