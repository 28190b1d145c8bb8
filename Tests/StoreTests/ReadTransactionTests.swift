import Base
import Glibc
import Store
import Synchronization
import TestSupport
import Testing

@Suite struct ReadTransactionTests {
    @Test func aRecordThatWasPutIsRead() throws {
        try withTemporaryStore(tables: testTables) { store in
            let key = UserKey(tenant: "a", id: 7)
            try store.writeBlocking { try $0.put(users, key, TestRecord(7, "Ada")) }
            #expect(try store.read { try $0.get(users, key) } == TestRecord(7, "Ada"))
            #expect(try store.read { try $0.get(users, UserKey(tenant: "b", id: 7)) } == nil)
            #expect(try store.read { try $0.exists(users, key) })
            #expect(try store.read { try $0.withValue(users, key) { $0.count } } == 11)
            #expect(try store.read { try $0.count(users) } == 1)
        }
    }

    @Test func anEmptyValueIsAValue() throws {
        try withTemporaryStore(tables: testTables) { store in
            try store.writeBlocking { try $0.put(blobs, [1], []) }
            #expect(try store.read { try $0.get(blobs, [1]) } == [])
        }
    }

    @Test func aNestedReadSeesTheOuterSnapshot() throws {
        try withTemporaryStore(tables: testTables) { store in
            try store.writeBlocking { try $0.put(blobs, [1], [1]) }
            try store.read { outer in
                try store.writeBlocking { try $0.put(blobs, [1], [2]) }
                #expect(try store.read { try $0.get(blobs, [1]) } == [1])
                #expect(try store.reader().read { try $0.get(blobs, [1]) } == [1])
                #expect(try outer.get(blobs, [1]) == [1])
            }
            #expect(try store.read { try $0.get(blobs, [1]) } == [2])
        }
    }

    @Test func aThrowingReadEndsItsSnapshot() throws {
        struct Stop: Error {}
        try withTemporaryStore(tables: testTables) { store in
            #expect(throws: Stop.self) { try store.read { _ in throw Stop() } }
            try store.writeBlocking { try $0.put(blobs, [1], [2]) }
            #expect(try store.read { try $0.get(blobs, [1]) } == [2])
        }
    }

    @Test func eachThreadReadsWithItsOwnReader() throws {
        try withTemporaryStore(tables: testTables) { store in
            try store.writeBlocking { try $0.put(blobs, [1], [2]) }
            let found = Mutex<[[UInt8]?]>([])
            let threads = (0..<8).map { number in
                OSThread(name: "reader-\(number)") {
                    for _ in 0..<200 {
                        let value = try? store.read { try $0.get(blobs, [1]) }
                        found.withLock { $0.append(value) }
                    }
                }
            }
            for thread in threads { thread.join() }
            #expect(found.withLock { $0 == Array(repeating: [2], count: 1_600) })
            // The threads gave their slots back when they ended, so that 64 more find room.
            for _ in 0..<64 { OSThread(name: "reader") { _ = try? store.read { try $0.count(blobs) } }.join() }
            #expect(try store.statistics().readersUsed < 32)
        }
    }

    @Test func moreReadersThanSlotsIsAnError() throws {
        try withTemporaryStore(tables: testTables) {
            $0.readersMax = 1
        } _: { store in
            try store.read { _ in
                let error = Mutex<StoreError?>(nil)
                OSThread(name: "second") {
                    do { try store.read { _ in } } catch let caught as StoreError {
                        error.withLock { $0 = caught }
                    } catch {}
                }.join()
                #expect(error.withLock { $0 } == .readersFull)
            }
        }
    }

    @Test(arguments: [511, 512]) func keysHaveALimit(byteCount: Int) throws {
        try withTemporaryStore(tables: testTables) { store in
            let key = [UInt8](repeating: 7, count: byteCount)
            if byteCount <= KeyWriter.byteCountMax {
                try store.writeBlocking { try $0.put(blobs, key, [1]) }
                #expect(try store.read { try $0.get(blobs, key) } == [1])
            } else {
                #expect(throws: StoreError.keySize) { try store.writeBlocking { try $0.put(blobs, key, [1]) } }
                #expect(throws: StoreError.keySize) { try store.read { try $0.get(blobs, key) } }
            }
        }
    }

    @Test func anEmptyKeyIsAnError() throws {
        try withTemporaryStore(tables: testTables) { store in
            #expect(throws: StoreError.keySize) { try store.writeBlocking { try $0.put(blobs, [], [1]) } }
            #expect(throws: StoreError.keySize) { try store.writeBlocking { try $0.delete(blobs, []) } }
            #expect(throws: StoreError.keySize) { try store.read { try $0.get(blobs, []) } }
        }
    }
}
