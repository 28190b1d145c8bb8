import Base
import TestSupport
import Testing

@testable import Store

/// What a restored store knows about the records of its backup.
@Suite struct RestoredStoreTests {
    @Test func `Records of the backup are told from later ones, also when the clock is lowered`() throws {
        try withTemporaryDirectory { directory in
            let store = try openTestStore(at: directory, tables: testTables)
            defer { store.close() }
            func areFromBackup(_ seconds: [Int64]) throws -> [Bool] {
                try store.read { transaction -> [Bool] in
                    var found: [Bool] = []
                    for second in seconds {
                        found.append(try transaction.isFromBackup(madeAt: Timestamp(seconds: second)))
                    }
                    return found
                }
            }
            let unrestored = try areFromBackup([1, 100])
            #expect(unrestored == [false, false])
            try store.writeBlocking { try $0.setNewestOfBackup(Timestamp(seconds: 100)) }
            let restored = try areFromBackup([99, 100, 101])
            #expect(restored == [true, true, false])
            try store.writeBlocking { try $0.lowerNewestOfBackup(to: Timestamp(seconds: 200)) }
            let unchanged = try areFromBackup([100, 101])
            #expect(unchanged == [true, false])
            try store.writeBlocking { try $0.lowerNewestOfBackup(to: Timestamp(seconds: 50)) }
            let lowered = try areFromBackup([50, 51, 100])
            #expect(lowered == [true, false, false])
        }
    }
}
