import Base
import Messages
import Store
import TestSupport
import Testing

@testable import Identity

/// The work that a server does once a minute.
@Suite struct SweepTests {
    /// Without this, one damaged record would end all housekeeping until somebody noticed that the disk fills up.
    @Test func `A damaged tenant does not stop the parts of the sweep that come after it`() async throws {
        try await withServer { server in
            let client = try server.connect()
            let _: ProjectRotateSigningKeyResponse = try client.call(
                "postern.v1.Project/RotateSigningKey", ProjectRotateSigningKeyRequest())
            let asBytes = Table<TenantPrefix, [UInt8]>(
                id: Tables.tenants.id, name: Tables.tenants.name, owner: Tables.tenants.owner,
                purge: Tables.tenants.purge)
            // The length of a field that is not there.
            try await server.project.store.write { try $0.put(asBytes, TenantPrefix("damaged"), [0x0A, 0x7F]) }
            server.clock.advance(by: .hours(48))
            await #expect(throws: StoreError.corrupt(table: "tenants")) { try await server.project.sweepForAll() }
            let isRetired = try server.project.store.read { transaction in
                var found = false
                try transaction.scanEvents(tenant: .empty, from: 0) { event in
                    found = try found || EventRecord(decoding: event.payload).kind == .signingKeyRetired
                    return !found
                }
                return found
            }
            #expect(isRetired)
        }
    }
}
