import Base
import Messages
import TestSupport
import Testing

@testable import Identity
@testable import Store

/// The sweep's part in the event logs, over several tenants: what it deletes, what it finds, and where it goes on.
@Suite struct EventUpkeepTests {
    private static let tenants: [Text] = ["a", "b", "c", "d"]
    /// Bounds so small that every sweep stops in the middle of something.
    private static let small = EventUpkeep.Bounds(tenantsMax: 2, eventsFollowedMax: 7, eventsDeletedPerWrite: 3)
    /// The number of these sweeps that it takes to visit all 40 events and 4 tenants.
    private static let sweepsOfRound = 8

    /// Appends ten events for each tenant, an hour apart.
    private func fill(_ fixture: Fixture) async throws {
        for tenantID in Self.tenants { try await fixture.makeTenant(tenantID) }
        for _ in 0..<10 {
            fixture.clock.advance(by: .hours(1))
            try await fixture.store.write { [now = fixture.now] transaction in
                for tenantID in Self.tenants {
                    try transaction.appendEvent(.userUpdated, tenantID: tenantID, origin: .server, now: now)
                }
            }
        }
    }

    private func keepEvents(of tenantID: Text, for time: Duration, _ fixture: Fixture) async throws {
        try await fixture.store.write { transaction in
            var record = try #require(try transaction.get(Tables.tenants, TenantPrefix(tenantID)))
            record.tenant?.eventRetentionSeconds = time.components.seconds
            try transaction.put(Tables.tenants, TenantPrefix(tenantID), record)
        }
    }

    private func sequences(of tenantID: Text, _ fixture: Fixture) throws -> [UInt64] {
        try fixture.store.read { transaction in
            var found: [UInt64] = []
            try transaction.scanEvents(tenant: tenantID) { event in
                found.append(event.sequence)
                return true
            }
            return found
        }
    }

    @Test func `Only a tenant that says so loses its old events, slice by slice`()
        async throws
    {
        try await withFixture { fixture in
            try await fill(fixture)
            // The events of the last three hours stay.
            for tenantID in ["a", "d"] as [Text] {
                try await keepEvents(of: tenantID, for: .minutes(150), fixture)
            }
            let upkeep = EventUpkeep(fixture.resources, bounds: Self.small)
            try await upkeep.sweep(now: fixture.now)
            #expect(try sequences(of: "a", fixture) == [8, 9, 10])
            #expect(try sequences(of: "d", fixture) == Array(1...10), "its turn comes with the next sweep")
            try await upkeep.sweep(now: fixture.now)
            #expect(try sequences(of: "d", fixture) == [8, 9, 10])
            #expect(try sequences(of: "b", fixture) == Array(1...10))
            for _ in 0..<Self.sweepsOfRound { try await upkeep.sweep(now: fixture.now) }
            #expect(upkeep.faults.value == 0)
            let checkpoint = try fixture.store.read { try $0.eventCheckpoint(tenant: "a") }
            #expect(checkpoint?.head.sequence == 7 && checkpoint?.cutAt == fixture.now)
        }
    }

    @Test func `A damaged tenant does not keep the old events of others`() async throws {
        try await withFixture { fixture in
            try await fill(fixture)
            try await keepEvents(of: "d", for: .minutes(150), fixture)
            let asBytes = Table<TenantPrefix, [UInt8]>(
                id: Tables.tenants.id, name: Tables.tenants.name, owner: Tables.tenants.owner,
                purge: Tables.tenants.purge)
            // The length of a field that is not there.
            try await fixture.store.write { try $0.put(asBytes, TenantPrefix("b"), [0x0A, 0x7F]) }
            try await EventUpkeep(fixture.resources).trim(now: fixture.now)
            #expect(try sequences(of: "d", fixture) == [8, 9, 10])
        }
    }

    @Test func `A damaged event or head does not keep the chains of others from being followed`() async throws {
        try await withFixture { fixture in
            try await fill(fixture)
            try await fixture.store.write { transaction in
                // Too short for an event, and for a head.
                try transaction.put(Schema.events, EventKey(tenant: "a", sequence: 4), [1])
                try transaction.put(Schema.eventHeads, TenantPrefix("b"), [1])
                try transaction.delete(Schema.events, EventKey(tenant: "d", sequence: 10))
            }
            let upkeep = EventUpkeep(fixture.resources)
            for round in 1...2 {
                try upkeep.follow()
                #expect(upkeep.faults.value == UInt64(3 * round))
            }
        }
    }

    @Test func `What is cut off a chain while it is followed is no fault`() async throws {
        try await withFixture { fixture in
            try await fill(fixture)
            try await keepEvents(of: "a", for: .minutes(570), fixture)
            let upkeep = EventUpkeep(fixture.resources, bounds: Self.small)
            for _ in 0..<Self.sweepsOfRound {
                try await upkeep.sweep(now: fixture.now)
                fixture.clock.advance(by: .hours(2))
            }
            #expect(try sequences(of: "a", fixture).isEmpty)
            // A tenant disappears as a whole while its chain is followed.
            let other = EventUpkeep(fixture.resources, bounds: Self.small)
            try await other.sweep(now: fixture.now)
            try await fixture.store.write { [now = fixture.now] transaction in
                _ = try transaction.deleteEvents(ofDeletedTenant: "b", limit: 100, now: now)
            }
            for _ in 0..<Self.sweepsOfRound { try await other.sweep(now: fixture.now) }
            #expect(upkeep.faults.value == 0 && other.faults.value == 0)
        }
    }

    @Test func `An event that is altered and one that is missing are found once a round, whatever a sweep can do`()
        async throws
    {
        try await withFixture { fixture in
            try await fill(fixture)
            let upkeep = EventUpkeep(fixture.resources, bounds: Self.small)
            for _ in 0..<Self.sweepsOfRound { try await upkeep.sweep(now: fixture.now) }
            #expect(upkeep.faults.value == 0)
            try await fixture.store.write { transaction in
                let altered = EventKey(tenant: "b", sequence: 4)
                var record = try #require(try transaction.get(Schema.events, altered))
                record[record.count - 1] ^= 1
                try transaction.put(Schema.events, altered, record)
                try transaction.delete(Schema.events, EventKey(tenant: "c", sequence: 10))
            }
            // Without these bounds, one sweep is a whole round.
            let unbound = EventUpkeep(fixture.resources)
            for round in 1...3 {
                try await unbound.sweep(now: fixture.now)
                #expect(unbound.faults.value == UInt64(2 * round))
            }
            for _ in 0..<2 * Self.sweepsOfRound { try await upkeep.sweep(now: fixture.now) }
            #expect(upkeep.faults.value >= 2)
        }
    }
}

extension EventUpkeep {
    fileprivate func sweep(now: Timestamp) async throws {
        try await trim(now: now)
        try follow()
    }
}
