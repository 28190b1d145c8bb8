import Base
import Identity
import Messages
import Rules
import Service
import Store
import TestSupport
import Testing

/// Calls that change many users or tenants: none of their writes is so long that it holds up everybody else's.
@Suite struct LongChangeTests {
    private static let count = 120
    private static let changesMax = 40
    /// More records than one user or tenant has here.
    private static let itemMax = 20

    /// Every method that takes a list of things to change, or changes all that it finds.
    enum Change: String, CaseIterable {
        case importUsers, replaceUsers, updateUsers, deleteUsers, endSessions, updateTenants, expireAnonymousUsers
    }

    @Test(arguments: Change.allCases)
    func `Others get their turn within a long change`(_ change: Change) async throws {
        try await withServer(configure: { $0.limits.sliceChangesMax = Self.changesMax }) { server in
            let identity = try IdentityClient(server)
            try Self.prepare(change, identity)
            let before = try server.project.store.statistics()
            #expect(before.largestWrite <= Self.changesMax + Self.itemMax, "preparing")
            #expect(try await Self.make(change, identity, server) == Self.count)
            let after = try server.project.store.statistics()
            #expect(after.largestWrite <= Self.changesMax + Self.itemMax)
            // What was counted is the change: as many records take as many writes.
            #expect(Int(after.writes - before.writes) >= Self.count / (Self.changesMax + Self.itemMax))
        }
    }

    private static var users: [ImportUser] {
        (0..<count).map {
            ImportUser(
                uid: Text("u\($0)"), email: Text("u\($0)@example.com"), customClaimsJSON: [UInt8](#"{"a":1}"#.utf8))
        }
    }

    private static func prepare(_ change: Change, _ identity: IdentityClient) throws {
        switch change {
        case .importUsers: break
        case .replaceUsers, .updateUsers, .deleteUsers:
            #expect(try ImportTests.importing(identity.client, users).createdCount == count)
        case .endSessions:
            for number in 0..<count { _ = try identity.signIn(customTokenFor: Text("u\(number)")) }
        case .expireAnonymousUsers:
            try identity.setTenant(["enable_anonymous_user", "anonymous_user_expiry_seconds"]) {
                $0.enableAnonymousUser = true
                $0.anonymousUserExpirySeconds = 86_400
            }
            for _ in 0..<count { _ = try identity.signUp() }
        case .updateTenants:
            for number in 0..<count {
                let _: TenantsCreateResponse = try identity.client.call(
                    "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: Text("tenant-\(number)")))
            }
        }
    }

    /// Returns how many were changed.
    private static func make(_ change: Change, _ identity: IdentityClient, _ server: TestServer) async throws -> Int {
        let client = identity.client
        switch change {
        case .importUsers: return Int(try ImportTests.importing(client, users).createdCount)
        case .replaceUsers:
            return Int(try ImportTests.importing(client, users, onConflict: .replace).replacedCount)
        case .updateUsers:
            let answer: UsersUpdateManyResponse = try client.call(
                "postern.v1.Users/UpdateMany",
                UsersUpdateManyRequest(
                    pageSize: 500, allUsers: true, updateMask: ProtobufFieldMask(paths: ["disabled"]), disabled: true))
            return Int(answer.changedCount)
        case .deleteUsers:
            let answer: UsersBatchDeleteResponse = try client.call(
                "postern.v1.Users/BatchDelete", UsersBatchDeleteRequest(uids: users.map(\.uid), force: true))
            return Int(answer.deletedCount)
        case .endSessions:
            let answer: TenantsUpdateResponse = try client.call(
                "postern.v1.Tenants/Update",
                TenantsUpdateRequest(
                    tenant: Messages.Tenant(secondFactorState: .mandatory),
                    updateMask: ProtobufFieldMask(paths: ["second_factor_state"]),
                    endSessionsWithoutSecondFactor: true))
            return Int(answer.endedSessionCount)
        case .updateTenants:
            let answer: TenantsUpdateManyResponse = try client.call(
                "postern.v1.Tenants/UpdateMany",
                TenantsUpdateManyRequest(
                    pageSize: 200, filter: TenantFilter(tenantIDPrefix: "tenant-"),
                    tenant: Messages.Tenant(enableAnonymousUser: true),
                    updateMask: ProtobufFieldMask(paths: ["enable_anonymous_user"])))
            return answer.results.count { $0.change != nil }
        case .expireAnonymousUsers:
            // The largest write is that of a call; the sweep, which is none, is counted as one here.
            await WriteMeter.$current.withValue(WriteMeter()) {
                for _ in 0..<2 {
                    server.clock.advance(by: .days(2))
                    await server.project.sweep()
                }
            }
            return Int(server.project.anonymousExpiry.expiredCount.value)
        }
    }
}
