import Base
import TestSupport
import Testing

@testable import Store

@Suite struct EventLogTests {
    private func append(_ store: Store, _ tenant: Text, _ payload: String) throws -> EventPosition {
        try store.writeBlocking { transaction in
            try transaction.appendEvent(tenant: tenant, bytes(payload))
        }
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
            #expect(try append(store, "a", "1") == EventPosition(globalSequence: 1, sequence: 1))
            #expect(try append(store, "", "2") == EventPosition(globalSequence: 2, sequence: 1))
            let both = try store.writeBlocking { transaction in
                [
                    try transaction.appendEvent(tenant: "a", bytes("3")),
                    try transaction.appendEvent(tenant: "a", bytes("4")),
                ]
            }
            #expect(both.map(\.globalSequence) == [3, 4])
            #expect(both.map(\.sequence) == [2, 3])
            store.close()
            let again = try openTestStore(at: directory, tables: [])
            defer { again.close() }
            #expect(try append(again, "a", "5") == EventPosition(globalSequence: 5, sequence: 4))
            #expect(try payloads(again, "a") == ["1", "3", "4", "5"])
            #expect(try payloads(again, "") == ["2"])
            #expect(try payloads(again, "b") == [])
        }
    }

    @Test func anEventOfAFailedWriteLeavesNoGap() throws {
        struct Refused: Error {}
        try withTemporaryStore(tables: []) { store in
            _ = try append(store, "a", "1")
            #expect(throws: Refused.self) {
                try store.writeBlocking { transaction in
                    try transaction.appendEvent(tenant: "a", bytes("lost"))
                    throw Refused()
                }
            }
            #expect(try append(store, "a", "2") == EventPosition(globalSequence: 2, sequence: 2))
            #expect(try store.read { try $0.verifyEvents(tenant: "a") } == .intact(count: 2))
        }
    }

    @Test func eventsAreListedByRange() throws {
        try withTemporaryStore(tables: []) { store in
            for number in 1...300 { _ = try append(store, "a", "\(number)") }
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
                _ = try append(store, "a", "\(number)")
                _ = try append(store, "b", "\(number)")
            }
            #expect(try store.read { try $0.verifyEvents(tenant: "a") } == .intact(count: 10))
        }
    }

    /// Whoever holds the record key can write records that verify; the chain still shows what was changed.
    @Test(arguments: [1, 5, 10] as [UInt64]) func anAlteredEventBreaksTheChain(sequence: UInt64) throws {
        try withTemporaryStore(tables: []) { store in
            for number in 1...10 { _ = try append(store, "a", "\(number)") }
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
            for number in 1...10 { _ = try append(store, "a", "\(number)") }
            try store.writeBlocking { try $0.delete(Schema.events, EventKey(tenant: "a", sequence: sequence)) }
            #expect(try store.read { try $0.verifyEvents(tenant: "a") } == .broken(sequence: sequence))
        }
    }

    @Test func whatRetentionLeavesVerifiesFromItsCheckpoint() throws {
        try withTemporaryStore(tables: []) { store in
            for number in 1...10 { _ = try append(store, "a", "\(number)") }
            var checkpoint = EventHead.empty
            try store.read { transaction in
                try transaction.scanEvents(tenant: "a", from: 4, limit: 1) { event in
                    checkpoint = EventHead(
                        sequence: event.sequence, hash: try transaction.hash(of: event, tenant: "a"))
                    return true
                }
            }
            #expect(try store.writeBlocking { try $0.deleteEvents(tenant: "a", through: 4, limit: 3) } == 3)
            #expect(try store.writeBlocking { try $0.deleteEvents(tenant: "a", through: 4, limit: 3) } == 1)
            #expect(try store.writeBlocking { try $0.deleteEvents(tenant: "a", through: 4, limit: 3) } == 0)
            #expect(try payloads(store, "a") == ["5", "6", "7", "8", "9", "10"])
            let kept = checkpoint
            #expect(try store.read { try $0.verifyEvents(tenant: "a", after: kept) } == .intact(count: 6))
            #expect(try store.read { try $0.verifyEvents(tenant: "a") } == .broken(sequence: 1))
        }
    }
}
