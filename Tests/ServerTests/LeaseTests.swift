import Base
import Messages
import Store
import TestSupport
import Testing

@testable import Identity
@testable import Service

/// The work that one node of a cluster does for all.
@Suite struct LeaseTests {
    private func leases(of server: TestServer) async throws -> [StoredLease] {
        try await server.project.store.reachJournalEnd()
        return try server.project.store.read { transaction in
            var rows: [StoredLease] = []
            try transaction.scan(Tables.leases) { row in
                rows.append(try row.record)
                return true
            }
            return rows
        }
    }

    /// A node with an unproven clock sweeps nothing.
    private func proveClocks(_ clock: ManualClock, _ servers: TestServer...) {
        clock.advance(by: .minutes(11))
        for server in servers { server.project.checkClock() }
    }

    @Test func oneNodeSweepsAsLongAsItIsThere() async throws {
        try await withTwoServers { first, second in
            proveClocks(first.clock, first, second)
            for minute in 1...10 {
                await first.project.sweep()
                await second.project.sweep()
                #expect(second.project.leases.leftCount.value == UInt64(minute))
                let rows = try await leases(of: second)
                #expect(rows.map(\.renewals) == [UInt64(minute - 1)])
                first.clock.advance(by: .minutes(1))
            }
            #expect(first.project.leases.leftCount.value == 0)
        }
    }

    @Test func anotherNodeSweepsWhenTheOneThatDidIsGone() async throws {
        try await withTwoServers { first, second in
            proveClocks(first.clock, first, second)
            await first.project.sweep()
            // The second node does not know for how long the row has been unchanged.
            await second.project.sweep()
            first.clock.advance(by: Limits().journal.leaseDuration - .seconds(1))
            await second.project.sweep()
            #expect(second.project.leases.leftCount.value == 2)
            first.clock.advance(by: .seconds(1))
            await second.project.sweep()
            #expect(second.project.leases.leftCount.value == 2)
            // The first node was only paused: it now leaves the work to the other.
            await first.project.sweep()
            #expect(first.project.leases.leftCount.value == 1)
        }
    }

    @Test func aNodeThatStopsInOrderGivesItsWorkBack() async throws {
        try await withTwoServers { first, second in
            proveClocks(first.clock, first, second)
            await first.project.sweep()
            await first.instance.drain()
            // A sweep that had begun before the stop comes to ask for the lease.
            await first.project.sweep()
            let left = try await leases(of: second)
            #expect(left.isEmpty)
            await second.project.sweep()
            #expect(second.project.leases.leftCount.value == 0)
            await first.project.leases.giveBack()
            let taken = try await leases(of: second)
            #expect(taken.count == 1)
        }
    }

    @Test func aNodeWhoseClockIsSetBackGivesWay() async throws {
        let (clock, secondClock) = (ManualClock(), ManualClock())
        try await withTwoNodes(clock: clock, secondClock: secondClock) { nodes in
            let (first, second) = (nodes.first, nodes.second)
            secondClock.advance(by: .minutes(11))
            proveClocks(clock, first, second)
            await first.project.sweep()
            clock.step(by: .zero - .days(1))
            for _ in 0..<4 {
                await first.project.sweep()
                await second.project.sweep()
                clock.advance(by: .minutes(1))
                secondClock.advance(by: .minutes(1))
            }
            #expect(first.project.sweepsPutOff.value == 4)
            // The row has been unchanged for three minutes when the fourth sweep begins.
            #expect(second.project.leases.leftCount.value == 3)
        }
    }

    @Test func whatTwoNodesSweepAtTheSameTimeHappensOnce() async throws {
        try await withTwoServers { first, second in
            proveClocks(first.clock, first, second)
            let client = try IdentityClient(first)
            let _: ProjectRotateSigningKeyResponse = try client.client.call(
                "postern.v1.Project/RotateSigningKey", ProjectRotateSigningKeyRequest())
            first.clock.advance(by: .hours(48))
            try await second.project.store.reachJournalEnd()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for server in [first, second, first, second] {
                    group.addTask { try await server.project.sweepForAll() }
                }
                try await group.waitForAll()
            }
            try await first.project.store.reachJournalEnd()
            let retired = try first.project.store.read { transaction in
                var count = 0
                try transaction.scanEvents(tenant: .empty, from: 0) { event in
                    if try EventRecord(decoding: event.payload).kind == .signingKeyRetired { count += 1 }
                    return true
                }
                return count
            }
            #expect(retired == 1)
        }
    }

    @Test func aServerOutsideOfAClusterHasNoLeases() async throws {
        try await withServer { server in
            guard !server.project.store.isInCluster else { return }
            await server.project.sweep()
            let rows = try await leases(of: server)
            #expect(rows.isEmpty)
        }
    }
}
