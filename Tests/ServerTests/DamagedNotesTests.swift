import Base
import Messages
import TestSupport
import Testing

@testable import Identity
@testable import Store

/// Damage of rows by which the sweep decides what to do.
@Suite struct DamagedNotesTests {
    /// Damages the only row of the table.
    private static func damageRow(of table: TableDeclaration, _ server: TestServer) async throws {
        try await server.project.store.write { transaction in
            let keys = try transaction.reading.firstKeys(tableID: table.id, prefix: [], limit: 2).keys
            let key = try #require(keys.first)
            #expect(keys.count == 1)
            try transaction.putDamaged(table.asBytes, key, try transaction.get(table.asBytes, key) ?? [])
        }
    }

    @Test func `A damaged note of the time is logged`() async throws {
        let count = Counter()
        let log = Log(level: .error) { line in
            let text = String(decoding: line, as: UTF8.self)
            if text.contains("a damaged record of the project"), text.contains("revocation_times") { count.add() }
        }
        try await withServer(log: log) { server in
            let now = server.project.clock.now()
            try await server.project.store.write { transaction in
                try transaction.revokeTokens(of: UserKey(.empty, "u"), before: now, now: now)
            }
            server.clock.advance(by: .minutes(11))
            await server.project.sweep()
            #expect(count.value == 0)
            try await Self.damageRow(of: Tables.revocationTimes.declaration, server)
            server.clock.advance(by: .minutes(1))
            await server.project.sweep()
            #expect(count.value == 1)
            // A whole note follows it now.
            server.clock.advance(by: .minutes(1))
            await server.project.sweep()
            #expect(count.value == 1)
        }
    }

    /// A node that cannot read the row of a lease takes the lease when nobody has written the row anew.
    @Test func `A damaged lease does not end the sweeps of a node`() async throws {
        try await withTwoServers { first, second in
            first.clock.advance(by: .minutes(11))
            for server in [first, second] { server.project.checkClock() }
            await first.project.sweep()
            try await second.project.store.reachJournalEnd()
            try await Self.damageRow(of: Tables.leases.declaration, second)
            await second.project.sweep()
            #expect(second.project.leases.leftCount.value == 1)
            first.clock.advance(by: Limits().journal.leaseDuration)
            await second.project.sweep()
            #expect(second.project.leases.leftCount.value == 1)
            // The row is whole again.
            let renewals = try second.project.store.read { try $0.get(Tables.leases, TextKey("sweep"))?.renewals }
            #expect(renewals == 0)
            // The other node finds the new holder's name.
            await first.project.sweep()
            #expect(first.project.leases.leftCount.value == 1)
        }
    }
}
