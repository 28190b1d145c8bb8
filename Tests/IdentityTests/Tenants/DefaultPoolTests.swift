import Base
import Messages
import Store
import TestSupport
import Testing

@testable import Identity

@Suite struct DefaultPoolTests {
    /// A new pool would have every toggle as in a new store.
    @Test func aLostDefaultPoolIsNotMadeAnew() async throws {
        try await withFixture { fixture in
            try await fixture.tenantDirectory().start()
            try await fixture.store.write { transaction in
                try transaction.put(Tables.users, UserKey("", "ann"), StoredUser())
                try transaction.delete(Tables.tenants, TenantPrefix(""))
            }
            await #expect(throws: StoreError.corrupt(table: "tenants")) {
                try await fixture.tenantDirectory().start()
            }
            #expect(try fixture.store.read { try !$0.exists(Tables.tenants, TenantPrefix("")) })
        }
    }
}
