import Base
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Store

/// A write whose answer is prepared while it is committed.
@Suite struct PreparedWriteTests {
    @Test func `The answer is prepared before the commit, and given after it`() async throws {
        try await withTemporaryStore(tables: testTables) { store in
            let seen = try await store.write(preparing: { value in
                (value, try? store.read { try $0.get(blobs, [1]) })
            }) { transaction in
                try transaction.put(blobs, [1], [2])
                return "decided"
            }
            #expect(seen.0 == "decided")
            #expect(seen.1 == .some(nil))
            #expect(try store.read { try $0.get(blobs, [1]) } == [2])
        }
    }

    @Test func `A write that changes nothing has its answer, too`() async throws {
        try await withTemporaryStore(tables: testTables) { store in
            let answer = try await store.write(preparing: { (value: Int) in value + 1 }) { _ in 1 }
            #expect(answer == 2)
        }
    }

    @Test func `Nothing is prepared for a write that is refused`() async throws {
        try await withTemporaryStore(tables: testTables) { store in
            let prepared = Atomic(0)
            await #expect(throws: Refused.self) {
                try await store.write(preparing: { (_: Int) in prepared.add(1, ordering: .relaxed) }) { _ -> Int in
                    throw Refused()
                }
            }
            #expect(prepared.load(ordering: .relaxed) == 0)
        }
    }

    /// The batch runs again without the write that threw after a change, and the clock of the second run counts.
    @Test func `The answer is that of the run that was committed`() async throws {
        try await withTemporaryStore(tables: testTables) { store in
            let gate = WriterGate()
            try gate.close(store)
            let runs = Atomic(0)
            let decided = Task {
                try await store.write(preparing: { (run: Int) in "run \(run)" }) { transaction in
                    try transaction.put(blobs, [1], [1])
                    return runs.add(1, ordering: .relaxed).newValue
                }
            }
            try await until("the first write waits") { store.queuedWriteCount == 1 }
            let refused = Task {
                try await store.write { transaction in
                    try transaction.put(blobs, [2], [2])
                    throw Refused()
                }
            }
            try await until("both writes wait") { store.queuedWriteCount == 2 }
            gate.open()
            let answer = try await decided.value
            #expect(answer == "run 2")
            await #expect(throws: Refused.self) { try await refused.value }
            #expect(try store.read { try $0.get(blobs, [2]) } == nil)
        }
    }

    @Test func `An answer is dropped when the commit fails`() async throws {
        try await withTemporaryDirectory { directory in
            let failing = Atomic(false)
            let prepared = Atomic(0)
            let store = try SmallStore(
                directory, commitOutcome: { failing.load(ordering: .relaxed) ? EIO : $0 }
            ).store
            defer { close(store) }
            failing.store(true, ordering: .relaxed)
            await #expect(throws: StoreError.fatal(code: EIO)) {
                try await store.write(preparing: { (_: Int) in prepared.add(1, ordering: .relaxed) }) { transaction in
                    try transaction.put(blobs, [1], [1])
                    return 1
                }
            }
            #expect(prepared.load(ordering: .relaxed) == 1)
        }
    }
}

private func close(_ store: Store) { store.close() }
