import Base
import Glibc
import Store
import TestSupport
import Testing

@Suite struct StoreStatisticsTests {
    @Test func statisticsTellWhatHappened() throws {
        try withTemporaryStore(tables: testTables) { store in
            let before = try store.statistics()
            try store.writeBlocking { try $0.put(blobs, [1], [UInt8](repeating: 0, count: 100_000)) }
            try store.writeBlocking { _ in }
            let after = try store.statistics()
            #expect(after.mapByteCount == 256 << 20)
            let (old, new) = (try #require(before.space), try #require(after.space))
            #expect(new.usedByteCount >= old.usedByteCount + 100_000)
            #expect(after.lastTransactionID == before.lastTransactionID + 1)
            #expect(after.commits == before.commits + 1)
            #expect(after.batches == before.batches + 2)
            #expect(after.writes == before.writes + 2)
            #expect(after.writeErrors == 0)
            #expect(after.diskWait == .zero)
            #expect(try store.checkReaders() == 0)
        }
    }

    @Test func whatIsDeletedIsRoomAgain() throws {
        try withTemporaryStore(tables: testTables) {
            $0.mapByteCount = 8 << 20
        } _: { store in
            try store.writeBlocking { try $0.put(blobs, [1], [UInt8](repeating: 0, count: 2 << 20)) }
            let full = try store.statistics()
            try store.writeBlocking { transaction in _ = try transaction.delete(blobs, [1]) }
            let after = try store.statistics()
            let (old, new) = (try #require(full.space), try #require(after.space))
            #expect(old.usedByteCount > 2 << 20 && old.usedByteCount <= full.extentByteCount)
            #expect(new.usedByteCount < 1 << 20)
            #expect(after.extentByteCount >= full.extentByteCount)
            // The disk has more room than the map.
            #expect(old.roomByteCount == 8 << 20 - old.usedByteCount)
            #expect(new.roomByteCount == 8 << 20 - new.usedByteCount)
        }
    }

    @Test func theRoomIsThatOfTheDiskIfTheMapIsLarger() throws {
        try withTemporaryDirectory { directory in
            let mapByteCount = 1 << 43
            let store = try openTestStore(at: directory, tables: testTables) { $0.mapByteCount = mapByteCount }
            defer { store.close() }
            let statistics = try store.statistics()
            var status = statvfs()
            #expect(statvfs(directory, &status) == 0)
            let disk = Int(statistics.fileByteCount) + Int(status.f_bavail * status.f_frsize)
            let space = try #require(statistics.space)
            let room = min(mapByteCount, disk) - space.usedByteCount
            // Other programs use the same disk.
            #expect(abs(space.roomByteCount - room) < 1 << 30)
        }
    }

    @Test func aBackupOpensAsAStoreWithTheSameRecords() throws {
        try withTemporaryStore(tables: testTables) { store in
            try withTemporaryDirectory { directory in
                try store.writeBlocking { transaction in
                    for number in 0..<1_000 {
                        let id = UInt64(number)
                        try transaction.put(users, UserKey(tenant: "a", id: id), TestRecord(id, "name"))
                    }
                }
                try store.backup(to: directory + "/copy")
                try store.writeBlocking { try $0.put(blobs, [1], [1]) }
                let copy = try openTestStore(at: directory + "/copy", tables: testTables) {
                    $0.createsIfMissing = false
                    $0.acceptsRollback = true
                }
                defer { copy.close() }
                #expect(copy.rollback == .witnessMissing)
                #expect(try copy.read { try $0.count(users) } == 1_000)
                #expect(try copy.read { try $0.get(users, UserKey(tenant: "a", id: 7)) } == TestRecord(7, "name"))
                #expect(try copy.read { try $0.count(blobs) } == 0)
            }
        }
    }

    @Test func aBackupNeverOverwritesAStore() throws {
        try withTemporaryStore(tables: testTables) { store in
            try withTemporaryDirectory { directory in
                try store.backup(to: directory)
                let first = contents(of: directory + "/data.mdb")
                #expect(throws: StoreError.self) { try store.backup(to: directory) }
                #expect(contents(of: directory + "/data.mdb") == first)
            }
        }
    }

    @Test func relaxedWritesAreThereAtOnceAndAfterReopening() throws {
        try withTemporaryDirectory { directory in
            let store = try openTestStore(at: directory, tables: testTables) {
                $0.durability = .relaxed
                $0.relaxedSyncInterval = .milliseconds(1)
            }
            for number in 0..<50 { try store.writeBlocking { try $0.put(blobs, [UInt8(number)], [1]) } }
            #expect(try store.read { try $0.count(blobs) } == 50)
            store.close()
            let again = try openTestStore(at: directory, tables: testTables)
            defer { again.close() }
            #expect(try again.read { try $0.count(blobs) } == 50)
        }
    }
}
