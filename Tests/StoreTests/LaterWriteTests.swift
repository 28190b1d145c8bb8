import Base
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Store

/// A call that makes several writes, of which a later one is not made: its failure does not say that nothing was done.
@Suite struct LaterWriteTests {
    private static let items: [[UInt8]] = [[1], [2]]

    private static func expectFirstItemOnly(_ store: Store) throws {
        let first = try store.read { try $0.get(JournaledNodes.values, [1]) }
        let second = try store.read { try $0.get(JournaledNodes.values, [2]) }
        #expect(first == [7] && second == nil)
    }

    @Test func `The deadline passes between two writes`() async throws {
        try await withJournaledNodes(1, { $0.limits.sliceItemsMax = 1 }) { cluster in
            let store = cluster.nodes[0].store
            let deadline = Instant.now.advanced(by: .seconds(4))
            await #expect(throws: StoreError.overdueAfterEarlierWrites) {
                try await WriteMeter.$current.withValue(WriteMeter(deadline: deadline)) {
                    _ = try await store.write(each: Self.items) { transaction, item -> Void in
                        try transaction.put(JournaledNodes.values, item, [7])
                        while Instant.now < deadline { usleep(1_000) }
                    }
                }
            }
            try Self.expectFirstItemOnly(store)
        }
    }

    @Test func `The engine goes away between two writes`() async throws {
        let (isLeaving, hasLeft) = (Flag(), Flag())
        @Sendable func fault(at question: MemoryJournal.Question) -> MemoryJournal.Fault? {
            guard isLeaving.isSet else { return nil }
            if question == .append { hasLeft.isSet = true }
            return question == .heads && hasLeft.isSet ? .before : nil
        }
        try await withJournaledNodes(1, { $0.limits.sliceItemsMax = 1 }, fault: fault) { cluster in
            let store = cluster.nodes[0].store
            try await store.write { try $0.put(JournaledNodes.values, [3], [3]) }
            isLeaving.isSet = true
            await #expect(throws: StoreError.journal(.outcomeUnknown)) {
                // A write without a change asks for the journal's end, and says that the engine is away.
                _ = try await store.write(each: Self.items) { transaction, item -> Void in
                    if item == [1] { try transaction.put(JournaledNodes.values, item, [7]) }
                }
            }
            isLeaving.isSet = false
            try Self.expectFirstItemOnly(store)
        }
    }

    @Test func `The first write of a call says what it did`() async throws {
        try await withJournaledNodes(1) { cluster in
            let store = cluster.nodes[0].store
            await #expect(throws: StoreError.overdue) {
                try await WriteMeter.$current.withValue(WriteMeter(deadline: .now)) {
                    _ = try await store.write(each: Self.items) { transaction, item -> Void in
                        try transaction.put(JournaledNodes.values, item, [7])
                    }
                }
            }
        }
    }

    private final class Flag: Sendable {
        private let state = Mutex(false)
        var isSet: Bool {
            get { state.withLock { $0 } }
            set { state.withLock { $0 = newValue } }
        }
    }
}
