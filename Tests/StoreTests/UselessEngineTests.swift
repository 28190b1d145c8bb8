import Synchronization
import TestSupport
import Testing

@testable import Store

/// Engines that take connections and are of no other use: for a node they are away.
@Suite struct UselessEngineTests {
    /// Fails the questions of one kind.
    private final class Ailment: Sendable {
        private struct State {
            var question: MemoryJournal.Question?
            var failedCount = 0
        }

        /// Then the engine is well again, so that each test ends in any case.
        static let failedCountMax = 500
        private let state = Mutex(State())

        var failedCount: Int { state.withLock { $0.failedCount } }

        func begin(_ question: MemoryJournal.Question) { state.withLock { $0.question = question } }
        func end() { state.withLock { $0.question = nil } }

        func fault(at question: MemoryJournal.Question) -> MemoryJournal.Fault? {
            state.withLock { state in
                guard state.question == question, state.failedCount < Self.failedCountMax else { return nil }
                state.failedCount += 1
                return .before
            }
        }
    }

    /// As when its disk is damaged.
    @Test func anEngineThatShowsNoEntriesIsAway() async throws {
        let ailment = Ailment()
        try await withJournaledNodes(1, fault: { ailment.fault(at: $0) }) { cluster in
            let store = cluster.nodes[0].store
            try await store.write { try $0.put(JournaledNodes.values, [1], [1]) }
            ailment.begin(.heads)
            // A write without a change asks for the journal's end.
            await #expect(throws: StoreError.journal(.away)) { try await store.write { _ in } }
            ailment.end()
            try await until("the node writes again") { (try? await store.write { _ in }) != nil }
            #expect(cluster.nodes[0].failure.error == nil)
        }
    }

    /// The stores are closed at the end.
    @Test func aNodeOfSuchAnEngineStops() async throws {
        let ailment = Ailment()
        try await withJournaledNodes(1, fault: { ailment.fault(at: $0) }) { cluster in
            try await cluster.catchUp()
            ailment.begin(.heads)
            _ = try? await cluster.nodes[0].store.write { _ in }
        }
        #expect(ailment.failedCount < Ailment.failedCountMax)
    }

    /// With each new connection, a node appends an entry of nothing.
    @Test func anEntryThatCannotBeReadDoesNotFillTheJournal() async throws {
        let ailment = Ailment()
        try await withJournaledNodes(2, fault: { ailment.fault(at: $0) }) { cluster in
            let (first, second) = (cluster.nodes[0].store, cluster.nodes[1].store)
            try await cluster.catchUp()
            ailment.begin(.entries)
            try await first.write { try $0.put(JournaledNodes.values, [1], [1]) }
            await #expect(throws: StoreError.journal(.away)) { try await second.write { _ in } }
            #expect(cluster.rows.count < Ailment.failedCountMax)
            ailment.end()
            try await until("the node writes again") { (try? await second.write { _ in }) != nil }
            #expect(try second.read { try $0.get(JournaledNodes.values, [1]) } == [1])
        }
    }

    /// A connection alone does not end the trouble.
    @Test func theTroubleLastsUntilTheEngineTakesEntries() async throws {
        let ailment = Ailment()
        let troubles = Mutex<[StoreTrouble?]>([])
        let connected = Mutex<[Bool]>([])
        let watched = Mutex<Store?>(nil)
        @Sendable func fault(at question: MemoryJournal.Question) -> MemoryJournal.Fault? {
            let fault = ailment.fault(at: question)
            if fault != nil, let store = watched.withLock({ $0 }) {
                connected.withLock { $0.append(store.journalStatus?.isConnected == true) }
            }
            return fault
        }
        let configure = { (configuration: inout StoreConfiguration) in
            configuration.onTrouble = { trouble in troubles.withLock { $0.append(trouble) } }
        }
        try await withJournaledNodes(1, configure, fault: fault) { cluster in
            let store = cluster.nodes[0].store
            watched.withLock { $0 = store }
            defer { watched.withLock { $0 = nil } }
            try await store.write { try $0.put(JournaledNodes.values, [1], [1]) }
            ailment.begin(.append)
            await #expect(throws: StoreError.journal(.outcomeUnknown)) {
                try await store.write { try $0.put(JournaledNodes.values, [1], [2]) }
            }
            try await until { ailment.failedCount >= 6 }
            #expect(troubles.withLock { $0 } == [StoreTrouble.journalAway])
            // The first entry was sent over a connection that had been of use.
            #expect(connected.withLock { $0.count > 1 && $0.dropFirst().allSatisfy { !$0 } })
            ailment.end()
            try await until("the node writes again") { (try? await store.write { _ in }) != nil }
            #expect(troubles.withLock { $0 } == [StoreTrouble.journalAway, nil])
        }
    }
}
