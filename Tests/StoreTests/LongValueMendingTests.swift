import Base
import Messages
import TestSupport
import Testing

@testable import Store

/// What is left of a damaged long value when it is replaced or deleted: nothing, at once or after the store is mended.
@Suite struct LongValueMendingTests {
    typealias Damage = DamagedLongValue.Damage
    typealias Owner = DamagedLongValue.Owner

    enum Change: CaseIterable, Sendable {
        case delete, shorten, rewrite

        func make(_ damaged: DamagedLongValue, _ transaction: borrowing WriteTransaction) throws {
            let (table, key) = (damaged.table, damaged.key(1))
            switch self {
            case .delete: #expect(try transaction.delete(table, key))
            case .shorten: try transaction.put(table, key, damaged.value(5, byteCount: 40))
            case .rewrite: try transaction.put(table, key, damaged.value(5))
            }
        }

        var pieceCount: Int { self == .rewrite ? DamagedLongValue.pieceCount : 0 }
    }

    /// A test may block its thread for the moment that closing takes.
    private static func close(_ store: Store) { store.close() }

    private static func change(_ damaged: DamagedLongValue, _ change: Change) throws -> Int {
        let store = try damaged.open()
        defer { store.close() }
        try store.writeBlocking { try change.make(damaged, $0) }
        return try LongValueTests.pieceCount(store)
    }

    private static func isMended(_ store: Store) throws -> Bool { try store.read { try $0.isMended() } }

    @Test(arguments: Damage.allCases, Owner.allCases)
    func `A damaged long value goes completely`(_ damage: Damage, _ owner: Owner) async throws {
        for change in Change.allCases {
            try await withTemporaryDirectory { directory in
                let damaged = DamagedLongValue(directory: directory, owner: owner)
                try damaged.make(damage)
                let left = try Self.change(damaged, change)
                let straysCount = damage == .renamed ? 1 : 0
                #expect(left == change.pieceCount + straysCount, "\(change)")
                // A backup of this moment has to be good.
                let unmended = try damaged.report()
                #expect(unmended.isSound, "\(change): \(unmended.lines)")
                // As if the server had been stopped in between.
                let store = try damaged.open()
                defer { Self.close(store) }
                let mended = try await store.mend()
                _ = try await store.countUnknownUsage()
                let isMended = try Self.isMended(store)
                #expect(mended.pieceCount == straysCount && isMended, "\(change)")
                #expect(try LongValueTests.pieceCount(store) == change.pieceCount, "\(change)")
                let counted = try store.read { try $0.countedUsage(ofTenant: "a") }
                #expect(try store.read { try $0.usage(ofTenant: "a") } == counted, "\(change)")
                Self.close(store)
                let report = try damaged.report()
                #expect(report.isSound, "\(change): \(report.lines)")
            }
        }
    }

    /// As a server left it that believed damaged marks. It wrote no note that a store is mended.
    private static func makeHurt(_ damaged: DamagedLongValue) throws {
        let store = try damaged.open()
        defer { store.close() }
        try store.writeBlocking { transaction in
            for number in 1...2 as ClosedRange<UInt8> {
                try transaction.put(damaged.table, damaged.key(number), damaged.value(number))
            }
        }
        try store.writeBlocking { transaction in
            for index in 0..<UInt8(40) {
                try transaction.put(Schema.pieces, [UInt8](repeating: index, count: 20), [index])
            }
            var sum = try transaction.reading.usage(ofTenant: "a")
            sum.byteCount += 100
            try transaction.setUsage(sum, ofTenant: "a")
            try transaction.delete(Schema.meta, Migration.mendedKey)
        }
    }

    @Test func `A store that was hurt before is mended once, and a healthy one is not looked at`() async throws {
        try await withTemporaryDirectory { directory in
            let damaged = DamagedLongValue(directory: directory, owner: .key)
            try Self.makeHurt(damaged)
            let hurt = try damaged.report()
            let isTold = hurt.lines.contains { $0.hasPrefix("pieces: 40 pieces of no value") }
            #expect(hurt.isSound && isTold, "\(hurt.lines)")
            let store = try damaged.open()
            defer { Self.close(store) }
            let mended = try await store.mend()
            #expect(mended.pieceCount == 40 && mended.tenantCount == 1)
            #expect(try await store.countUnknownUsage() == ["a"])
            #expect(try LongValueTests.pieceCount(store) == 2 * DamagedLongValue.pieceCount)
            for number in 1...2 as ClosedRange<UInt8> {
                let found = try store.read { try $0.get(damaged.table, damaged.key(number)) }
                #expect(found == damaged.value(number))
            }
            // With the note, nobody looks: the piece of no value stays, and `store verify` tells of it.
            try await store.write { try $0.put(Schema.pieces, [UInt8](repeating: 9, count: 20), [1]) }
            let again = try await store.mend()
            #expect(again.isEmpty)
            Self.close(store)
            let report = try damaged.report()
            #expect(!report.isSound)
        }
    }

    /// The name of a piece does not tell its row. So the mending must not take the pieces of a value that was put after
    /// it had looked.
    @Test func `Pieces that were put while a store is mended are not deleted`() throws {
        try withTemporaryDirectory { directory in
            let damaged = DamagedLongValue(directory: directory, owner: .nobody)
            let store = try damaged.open()
            defer { store.close() }
            let mending = store.environment.mending
            try store.writeBlocking { _ in mending.begin() }
            try store.writeBlocking { try $0.put(damaged.table, damaged.key(1), damaged.value(1)) }
            let keys = try store.read { try $0.keys(of: Schema.pieces, after: nil, limit: 1) }
            let name = Array(keys[0].prefix(PieceKey.nameByteCount))
            let isUsed = !mending.mayDelete(name)
            #expect(isUsed && !mending.isWhole)
            mending.finish()
            mending.end()
            #expect(!mending.isDone)
        }
    }
}
