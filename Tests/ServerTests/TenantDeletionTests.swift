import Base
import Identity
import Messages
import Rules
import Store
import TestSupport
import Testing

/// The deletion of a tenant with many rows, beside the calls of another.
@Suite struct TenantDeletionTests {
    private static let userCount = 6_000

    private static func create(_ client: RawClient, _ tenantID: Text, _ index: Int) throws {
        let _: UsersCreateResponse = try client.call(
            "postern.v1.Users/Create", UsersCreateRequest(tenantID: tenantID, uid: Text("u\(index)")))
    }

    private static func isPurged(_ store: Store) throws -> Bool {
        try store.read { try $0.get(Tables.tenants, TenantPrefix("large"))?.purged ?? false }
    }

    private static func isGoing(_ store: Store) throws -> Bool {
        try store.read { transaction in
            let record = try transaction.get(Tables.tenants, TenantPrefix("large"))
            return record?.deleted == true && record?.purged == false
        }
    }

    @Test func `Many rows go in slices, and the changes of another tenant are made between them`() async throws {
        try await withServer { server in
            let (client, store) = (try server.connect(), server.project.store)
            for tenantID in ["large", "other"] as [Text] {
                let _: TenantsCreateResponse = try client.call(
                    "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: tenantID))
            }
            for index in 0..<Self.userCount { try Self.create(client, "large", index) }
            let commits = try store.statistics().commits
            let (madeMeanwhile, made) = try await withThrowingTaskGroup(of: Void.self) { group in
                // The call is answered when the rows are gone.
                group.addTask {
                    let _: TenantsDeleteResponse = try server.connect().call(
                        "postern.v1.Tenants/Delete", TenantsDeleteRequest(tenantID: "large"))
                }
                var (madeMeanwhile, made) = (0, 0)
                while try !Self.isPurged(store), made < 100_000 {
                    let wasGoing = try Self.isGoing(store)
                    try Self.create(client, "other", made)
                    made += 1
                    if wasGoing, try Self.isGoing(store) { madeMeanwhile += 1 }
                }
                try await group.waitForAll()
                return (madeMeanwhile, made)
            }
            expectRefusal("TENANT_NOT_FOUND") { try Self.create(client, "large", Self.userCount) }
            #expect(try Self.isPurged(store))
            let slices = try store.statistics().commits - commits
            print("\(made) users were made, \(madeMeanwhile) of them meanwhile, in \(slices) commits")
            // A slice deletes 500 rows of each table.
            #expect(slices >= Self.userCount / 500)
            // A purge in one piece would let one change through, or none.
            #expect(madeMeanwhile >= 4)
            let usage = try store.read { try $0.usage(ofTenant: "large") }
            #expect(usage.countedRowCount == 0, "\(usage)")
            let others = try store.read { try $0.usage(ofTenant: "other") }
            #expect(others.countedRowCount == Int64(made))
        }
    }
}
