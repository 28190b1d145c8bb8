import Base
import TestSupport
import Testing

@testable import Store

/// What a start refuses, no operator can mend: a sound store must open, in whatever shape LMDB left its file.
@Suite struct SoundShapesTests {
    /// Each is made of the store that the one before has left.
    private enum Shape: CaseIterable, Sendable {
        case longValues, valuesShorterThanTheirPages, longRowOfFreePages, deepTable, events, onePageAgain, deletedEvents

        private static let long = [UInt8](repeating: 1, count: 300_000)

        func make(in transaction: borrowing WriteTransaction) throws {
            switch self {
            case .longValues:
                for key in UInt8(1)...20 { try transaction.put(blobs, [key], Self.long) }
            case .valuesShorterThanTheirPages:
                for key in UInt8(21)...30 {
                    try transaction.put(blobs, [key], Self.long)
                    try transaction.put(blobs, [key], [key])
                }
            case .longRowOfFreePages:
                for key in UInt8(1)...30 { try transaction.delete(blobs, [key]) }
            case .deepTable:
                try SoundShapesTests.putUsers(0..<20_000, transaction)
            case .events:
                for number in UInt8(0)..<100 { try transaction.appendEvent(tenant: "a", [number]) }
            case .onePageAgain:
                for number in UInt64(3)..<20_000 { try transaction.delete(users, UserKey(tenant: "a", id: number)) }
            case .deletedEvents:
                _ = try transaction.deleteEvents(ofDeletedTenant: "a", limit: 1_000, now: .zero)
            }
        }
    }

    fileprivate static func putUsers(_ numbers: Range<UInt64>, _ transaction: borrowing WriteTransaction) throws {
        for number in numbers {
            let record = TestRecord(number, "a record that is long enough to fill some pages")
            try transaction.put(users, UserKey(tenant: "a", id: number), record)
        }
    }

    private func expectSound(_ directory: String, _ shape: String) throws {
        let report = try StoreReport(
            StoreConfiguration(directory: directory, tables: testTables), authenticator: TestAuthenticator(),
            eventHash: testEventHash, records: { _, _ in })
        #expect(report.isSound, "\(shape): \(report.lines)")
        try openTestStore(at: directory, tables: testTables).close()
    }

    @Test func aStoreOpensInEveryShape() throws {
        try withTemporaryDirectory { directory in
            for shape in Shape.allCases {
                let store = try openTestStore(at: directory, tables: testTables)
                defer { store.close() }
                try store.writeBlocking { try shape.make(in: $0) }
                store.close()
                try expectSound(directory, "\(shape)")
            }
        }
    }

    /// While a snapshot lasts, each transaction leaves a row in the list of free pages.
    @Test(arguments: [Durability.synced, .relaxed]) func aLongListOfFreePagesIsNoDamage(durability: Durability) throws {
        try withTemporaryDirectory { directory in
            for isReading in [true, false, true] {
                let store = try openTestStore(at: directory, tables: testTables) { $0.durability = durability }
                defer { store.close() }
                func write() throws {
                    for round in UInt64(0)..<100 {
                        try store.writeBlocking { try Self.putUsers(round * 50..<round * 50 + 200, $0) }
                    }
                }
                if isReading { try store.read { _ in try write() } } else { try write() }
                store.close()
                try expectSound(directory, "\(durability), \(isReading)")
            }
        }
    }

    /// A start makes the file, then the tables, then the version. It may be killed before and after each.
    @Test(arguments: [false, true]) func aFirstStartThatWasKilledIsNoDamage(hadTables: Bool) throws {
        try withTemporaryDirectory { directory in
            var configuration = StoreConfiguration(directory: directory, tables: testTables)
            configuration.mapByteCount = 256 << 20
            if hadTables {
                let environment = try Environment(
                    configuration, authenticator: TestAuthenticator(), eventHash: testEventHash)
                defer { environment.close() }
                try environment.tables.open(in: environment.raw, makingMissing: true)
            } else {
                try DataFile.createIfMissing(configuration)
            }
            for _ in 0..<2 { try expectSound(directory, "tables: \(hadTables)") }
        }
    }
}
