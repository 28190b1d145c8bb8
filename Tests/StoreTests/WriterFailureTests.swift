import Base
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Store

@Suite struct WriterFailureTests {
    private func fill(_ store: Store) throws -> Int {
        var count = 0
        while true {
            do {
                let number = count
                try store.writeBlocking { transaction in
                    let key = withUnsafeBytes(of: UInt32(number).bigEndian) { [UInt8]($0) }
                    try transaction.put(blobs, key, [UInt8](repeating: 1, count: 3_000))
                }
            } catch StoreError.full {
                return count
            }
            count += 1
        }
    }

    @Test func aFullMapFailsWritesAndNothingElse() throws {
        try withTemporaryStore(tables: testTables) {
            $0.mapByteCount = 1 << 20
        } _: { store in
            let count = try fill(store)
            #expect(count > 50)
            #expect(try store.read { try $0.count(blobs) } == count)
            #expect(try store.statistics().writeErrors > 0)
            // Deleting needs pages, too; at the latest, it finds those that an earlier transaction freed.
            for _ in 0..<4 {
                _ = try? store.writeBlocking { try $0.deleteAll(blobs, prefix: EmptyPrefix(), limit: 20) }
            }
            #expect(try store.read { try $0.count(blobs) } < count)
            try store.writeBlocking { try $0.put(blobs, [9], [1]) }
            #expect(try store.read { try $0.get(blobs, [9]) } == [1])
        }
    }

    @Test func oneGiantWriteFailsAlone() throws {
        try withTemporaryStore(tables: testTables) {
            $0.mapByteCount = 1 << 20
        } _: { store in
            let gate = WriterGate()
            let outcomes = WriteOutcomes()
            try gate.close(store)
            for number in 0..<30 {
                try store.write { transaction in
                    let byteCount = number == 17 ? 4 << 20 : 10
                    // Swallowing the error must not let the batch be committed as if nothing had happened.
                    if number == 18 { try? transaction.put(blobs, [0], [1]) }
                    try transaction.put(blobs, [1, UInt8(number)], [UInt8](repeating: 1, count: byteCount))
                } completion: {
                    outcomes.record(number, $0)
                }
            }
            gate.open()
            let results = outcomes.wait(for: 30)
            #expect(results.map(\.number) == Array(0..<30))
            #expect(results.filter { $0.error != nil }.map(\.number) == [17])
            #expect(results[17].error == .full)
            #expect(try store.read { try $0.count(blobs) } == 30)
        }
    }

    @Test func aSwallowedFullErrorStillFailsTheWrite() throws {
        try withTemporaryStore(tables: testTables) {
            $0.mapByteCount = 1 << 20
        } _: { store throws in
            #expect(throws: StoreError.full) {
                try store.writeBlocking { transaction in
                    try transaction.put(blobs, [1], [1])
                    try? transaction.put(blobs, [2], [UInt8](repeating: 1, count: 4 << 20))
                }
            }
            #expect(try store.read { try $0.count(blobs) } == 0)
        }
    }

    @Test func aFailedSyncIsFatal() throws {
        try withTemporaryDirectory { directory in
            let failing = Atomic(false)
            let reported = Mutex<[StoreError]>([])
            let environment = try Environment(
                StoreConfiguration(directory: directory, tables: testTables), authenticator: TestAuthenticator(),
                eventHash: testEventHash)
            let store = try Store(environment) { counters throws(StoreError) in
                try Writer(
                    environment, counters: counters, onFatal: { error in reported.withLock { $0.append(error) } },
                    commitOutcome: { failing.load(ordering: .relaxed) ? EIO : $0 })
            }
            defer { store.close() }
            try store.writeBlocking { try $0.put(blobs, [1], [1]) }
            let gate = WriterGate()
            let outcomes = WriteOutcomes()
            try gate.close(store)
            for number in 0..<5 {
                try store.write {
                    try $0.put(blobs, [2], [2])
                } completion: {
                    outcomes.record(number, $0)
                }
            }
            failing.store(true, ordering: .relaxed)
            gate.open()
            #expect(outcomes.wait(for: 5).allSatisfy { $0.error == .fatal(code: EIO) })
            failing.store(false, ordering: .relaxed)
            #expect(throws: StoreError.fatal(code: EIO)) { try store.writeBlocking { _ in } }
            #expect(reported.withLock { $0 } == [.fatal(code: EIO)])
            #expect(try store.read { try $0.get(blobs, [1]) } == [1])
        }
    }
}
