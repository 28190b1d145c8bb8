import Base
import Store
import TestSupport
import Testing

/// Reads that share a snapshot (`StoreReader.beginSharing`).
@Suite struct SharedSnapshotTests {
    @Test func readsThatShareSeeTheFirstOnesSnapshot() throws {
        try withTemporaryStore(tables: testTables) { store in
            let reader = try store.reader()
            func value() throws -> [UInt8]? { try reader.read { try $0.get(blobs, [1]) } }
            try store.writeBlocking { try $0.put(blobs, [1], [1]) }
            reader.beginSharing()
            // The snapshot begins with the first read, not before.
            try store.writeBlocking { try $0.put(blobs, [1], [2]) }
            #expect(try value() == [2])
            try store.writeBlocking { try $0.put(blobs, [1], [3]) }
            #expect(try value() == [2])
            #expect(try store.read { try $0.get(blobs, [1]) } == [2])
            reader.endSharing()
            #expect(try value() == [3])
        }
    }

    @Test func readsAfterReadingAnewShareANewSnapshot() throws {
        try withTemporaryStore(tables: testTables) { store in
            let reader = try store.reader()
            func value() throws -> [UInt8]? { try reader.read { try $0.get(blobs, [1]) } }
            reader.beginSharing()
            reader.beginSharing()
            #expect(try value() == nil)
            try store.writeBlocking { try $0.put(blobs, [1], [1]) }
            #expect(try value() == nil)
            store.readAnew()
            #expect(try value() == [1])
            try store.writeBlocking { try $0.put(blobs, [1], [2]) }
            #expect(try value() == [1])
            reader.endSharing()
            reader.readAnew()
            // Nothing has begun a snapshot since.
            reader.readAnew()
            reader.endSharing()
            #expect(try value() == [2])
            store.readAnew()
            #expect(try value() == [2])
        }
    }

    @Test func sharingWithoutAReadHoldsNothing() throws {
        try withTemporaryStore(tables: testTables) { store in
            let reader = try store.reader()
            reader.beginSharing()
            reader.endSharing()
            try store.writeBlocking { try $0.put(blobs, [1], [1]) }
            #expect(try reader.read { try $0.get(blobs, [1]) } == [1])
        }
    }

    @Test func theOutermostEndEndsTheSnapshot() throws {
        try withTemporaryStore(tables: testTables) { store in
            let reader = try store.reader()
            reader.beginSharing()
            reader.beginSharing()
            #expect(try reader.read { try $0.get(blobs, [1]) } == nil)
            reader.endSharing()
            try store.writeBlocking { try $0.put(blobs, [1], [1]) }
            #expect(try reader.read { try $0.get(blobs, [1]) } == nil)
            reader.endSharing()
            #expect(try reader.read { try $0.get(blobs, [1]) } == [1])
        }
    }

    @Test func aReadThatThrowsLeavesTheSnapshotToTheOthers() throws {
        struct Stop: Error {}
        try withTemporaryStore(tables: testTables) { store in
            let reader = try store.reader()
            reader.beginSharing()
            #expect(throws: Stop.self) { try reader.read { _ in throw Stop() } }
            try store.writeBlocking { try $0.put(blobs, [1], [1]) }
            #expect(try reader.read { try $0.get(blobs, [1]) } == nil)
            reader.endSharing()
            #expect(try reader.read { try $0.get(blobs, [1]) } == [1])
        }
    }

    @Test func aStoreThatIsClosedWhileNothingWasReadRefusesTheReads() throws {
        let reader = try withTemporaryStore(tables: testTables) { store in
            let reader = try store.reader()
            reader.beginSharing()
            return reader
        }
        #expect(throws: StoreError.closed) { try reader.read { _ in } }
        reader.readAnew()
        reader.endSharing()
    }
}
