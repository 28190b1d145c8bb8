import Base
import TestSupport
import Testing

@testable import Store

@Suite struct EventLogTests {
    private func append(_ store: Store, _ tenant: Text, _ payloads: String...) throws {
        try store.writeBlocking { transaction in
            for payload in payloads { try transaction.appendEvent(tenant: tenant, bytes(payload)) }
        }
    }

    /// The sequences of a tenant's events: among the tenant's own, and among those of all tenants.
    private func sequences(_ store: Store, _ tenant: Text) throws -> [[UInt64]] {
        var found: [[UInt64]] = []
        try store.read { transaction in
            try transaction.scanEvents(tenant: tenant) { event in
                found.append([event.sequence, event.globalSequence])
                return true
            }
        }
        return found
    }

    private func payloads(
        _ store: Store, _ tenant: Text, from sequence: UInt64? = nil, reversed: Bool = false, limit: Int = .max
    ) throws -> [String] {
        var found: [String] = []
        try store.read { transaction in
            try transaction.scanEvents(tenant: tenant, from: sequence, reversed: reversed, limit: limit) { event in
                found.append(String(decoding: event.payload, as: UTF8.self))
                return true
            }
        }
        return found
    }

    @Test func sequencesCountPerTenantAndOverAll() throws {
        try withTemporaryDirectory { directory in
            let store = try openTestStore(at: directory, tables: [])
            try append(store, "a", "1")
            try append(store, "", "2")
            try append(store, "a", "3", "4")
            store.close()
            let again = try openTestStore(at: directory, tables: [])
            defer { again.close() }
            try append(again, "a", "5")
            #expect(try sequences(again, "a") == [[1, 1], [2, 3], [3, 4], [4, 5]])
            #expect(try sequences(again, "") == [[1, 2]])
            #expect(try payloads(again, "a") == ["1", "3", "4", "5"])
            #expect(try payloads(again, "") == ["2"])
            #expect(try payloads(again, "b") == [])
        }
    }

    @Test func anEventOfAFailedWriteLeavesNoGap() throws {
        struct Refused: Error {}
        try withTemporaryStore(tables: []) { store in
            try append(store, "a", "1")
            #expect(throws: Refused.self) {
                try store.writeBlocking { transaction in
                    try transaction.appendEvent(tenant: "a", bytes("lost"))
                    throw Refused()
                }
            }
            try append(store, "a", "2")
            #expect(try sequences(store, "a") == [[1, 1], [2, 2]])
            #expect(try store.read { try $0.verifyEvents(tenant: "a") } == .intact(count: 2))
        }
    }

    @Test func eventsAreListedByRange() throws {
        try withTemporaryStore(tables: []) { store in
            for number in 1...300 { try append(store, "a", "\(number)") }
            #expect(try payloads(store, "a", from: 255, limit: 3) == ["255", "256", "257"])
            #expect(try payloads(store, "a", reversed: true, limit: 2) == ["300", "299"])
            #expect(try payloads(store, "a", from: 256, reversed: true, limit: 2) == ["256", "255"])
            #expect(try payloads(store, "a", from: 301) == [])
        }
    }

    @Test func anIntactChainVerifies() throws {
        try withTemporaryStore(tables: []) { store in
            #expect(try store.read { try $0.verifyEvents(tenant: "a") } == .intact(count: 0))
            for number in 1...10 {
                try append(store, "a", "\(number)")
                try append(store, "b", "\(number)")
            }
            #expect(try store.read { try $0.verifyEvents(tenant: "a") } == .intact(count: 10))
        }
    }

    /// A holder of the record key can write records that verify; the chain still shows what was changed.
    @Test(arguments: [1, 5, 10] as [UInt64]) func anAlteredEventBreaksTheChain(sequence: UInt64) throws {
        try withTemporaryStore(tables: []) { store in
            for number in 1...10 { try append(store, "a", "\(number)") }
            try store.writeBlocking { transaction in
                let key = EventKey(tenant: "a", sequence: sequence)
                var record = try #require(try transaction.get(Schema.events, key))
                record[record.count - 1] ^= 1
                try transaction.put(Schema.events, key, record)
            }
            #expect(try store.read { try $0.verifyEvents(tenant: "a") } == .broken(sequence: sequence))
        }
    }

    @Test(arguments: [1, 5, 10] as [UInt64]) func aMissingEventBreaksTheChain(sequence: UInt64) throws {
        try withTemporaryStore(tables: []) { store in
            for number in 1...10 { try append(store, "a", "\(number)") }
            try store.writeBlocking { try $0.delete(Schema.events, EventKey(tenant: "a", sequence: sequence)) }
            #expect(try store.read { try $0.verifyEvents(tenant: "a") } == .broken(sequence: sequence))
        }
    }

    @Test func aWriteThatDeletesEventsEndsWithItsTime() throws {
        try withTemporaryStore(tables: [], { $0.limits.writeBatchTimeMax = .zero }) { store in
            for number in 1...3 { try append(store, "a", "\(number)") }
            for number in 1...3 as ClosedRange<UInt64> {
                let slice = try store.writeBlocking { transaction in
                    try transaction.deleteEvents(tenant: "a", limit: 9, now: .zero) { _ in true }
                }
                #expect(slice == WriteSlice(count: 1, isMore: true))
                let checkpoint = try store.read { try $0.eventCheckpoint(tenant: "a") }
                #expect(checkpoint?.head.sequence == number)
            }
            func purge() throws -> Bool {
                try store.writeBlocking { try $0.deleteEvents(ofDeletedTenant: "a", limit: 9, now: .zero) }
            }
            #expect(try !purge())
            #expect(try store.read { try $0.verifyEvents(tenant: "a") } == .intact(count: 0))
        }
    }

    @Test func whatRetentionLeavesVerifiesFromItsCheckpoint() throws {
        try withTemporaryStore(tables: [], { $0.limits.writeBatchTimeMax = .seconds(3_600) }) { store in
            for number in 1...10 { try append(store, "a", "\(number)") }
            let now = Timestamp(microseconds: 7)
            func delete(limit: Int) throws -> WriteSlice {
                try store.writeBlocking { transaction in
                    try transaction.deleteEvents(tenant: "a", limit: limit, now: now) { $0.sequence <= 4 }
                }
            }
            let slices = [try delete(limit: 3), try delete(limit: 3), try delete(limit: 3)]
            let expected = [(3, true), (1, false), (0, false)].map { WriteSlice(count: $0.0, isMore: $0.1) }
            #expect(slices == expected)
            #expect(try payloads(store, "a") == ["5", "6", "7", "8", "9", "10"])
            let checkpoint = try #require(try store.read { try $0.eventCheckpoint(tenant: "a") })
            #expect(checkpoint.head.sequence == 4 && checkpoint.cutAt == now)
            #expect(try store.read { try $0.verifyEvents(tenant: "a") } == .intact(count: 6))
            try store.writeBlocking { try $0.delete(Schema.events, EventKey(tenant: "a", sequence: 5)) }
            #expect(try store.read { try $0.verifyEvents(tenant: "a") } == .broken(sequence: 5))
        }
    }

    @Test(arguments: [0, 4]) func withoutItsCheckpointOrWithAnotherOneALogIsBroken(sequence: UInt64) throws {
        try withTemporaryStore(tables: []) { store in
            for number in 1...10 { try append(store, "a", "\(number)") }
            try store.writeBlocking { transaction in
                try transaction.deleteEvents(tenant: "a", limit: 9, now: .zero) { $0.sequence <= 4 }
                if sequence == 0 {
                    try transaction.delete(Schema.eventCheckpoints, TenantPrefix("a"))
                } else {
                    let head = EventHead(sequence: sequence, hash: [UInt8](repeating: 9, count: 32))
                    let forged = EventCheckpoint(head: head, cutAt: .zero)
                    try transaction.put(Schema.eventCheckpoints, TenantPrefix("a"), forged.encoded)
                }
            }
            #expect(try store.read { try $0.verifyEvents(tenant: "a") } == .broken(sequence: sequence + 1))
        }
    }

    @Test func aDeletedTenantsLogIsACheckpointThatLaterEventsFollow() throws {
        try withTemporaryStore(tables: [], { $0.limits.writeBatchTimeMax = .seconds(3_600) }) { store in
            for number in 1...10 { try append(store, "a", "\(number)") }
            try append(store, "b", "11")
            func delete() throws -> Bool {
                try store.writeBlocking { try $0.deleteEvents(ofDeletedTenant: "a", limit: 6, now: .zero) }
            }
            let areMore = [try delete(), try delete(), try delete()]
            #expect(areMore == [true, false, false])
            #expect(try store.read { try $0.count(Schema.events) } == 1)
            #expect(try store.read { try $0.count(Schema.eventHeads) } == 1)
            #expect(try store.read { try $0.verifyEvents(tenant: "a") } == .intact(count: 0))
            try append(store, "a", "12")
            #expect(try sequences(store, "a") == [[11, 12]])
            #expect(try store.read { try $0.verifyEvents(tenant: "a") } == .intact(count: 1))
        }
    }

    @Test func aChainIsFollowedInParts() throws {
        try withTemporaryStore(tables: []) { store in
            for number in 1...10 { try append(store, "a", "\(number)") }
            let (places, counts) = try store.read { transaction in
                var place = EventHead.empty
                var (places, counts): ([UInt64], [EventChainStatus]) = ([], [])
                for _ in 0..<3 {
                    counts.append(try transaction.followEvents(tenant: "a", from: &place, limit: 6))
                    places.append(place.sequence)
                }
                return (places, counts)
            }
            #expect(places == [6, 10, 10])
            #expect(counts == [.intact(count: 6), .intact(count: 4), .intact(count: 0)])
        }
    }
}
