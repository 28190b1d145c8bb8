import Base
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Store

/// Long values are put together for their readers: each reader sees one version of a value, and what was put together
/// is freed.
@Suite struct LongValueReadTests {
    private static let long = [UInt8](repeating: 5, count: 30_000)

    @Test func readingFreesWhatItJoined() throws {
        try withTemporaryStore(tables: LongValueTests.tables) { store in
            try store.writeBlocking { transaction in
                for number in 0..<UInt8(3) { try transaction.put(blobs, [number], Self.long) }
            }
            try store.read { transaction in
                let value = try transaction.get(blobs, [0])
                let exists = try transaction.exists(blobs, [1])
                let count = try transaction.withValue(blobs, [2]) { $0.count }
                var rowCount = 0
                try transaction.scan(blobs) { row in
                    rowCount += 1
                    return row.value.count == 30_000
                }
                #expect(value == Self.long && exists && count == 30_000 && rowCount == 3)
                let isFreed = transaction.longValues.isEmpty
                #expect(isFreed)
            }
            // What is borrowed stays until the transaction ends.
            let borrow: @Sendable (borrowing ReadTransaction) throws -> Void = { transaction in
                let wasFreed = transaction.longValues.isEmpty
                let first = try transaction.borrowedValue(blobs, [0])
                _ = try transaction.get(blobs, [1])
                let isKept = !transaction.longValues.isEmpty
                #expect(wasFreed && isKept)
                #expect(first.map { [UInt8]($0) } == Self.long)
            }
            for _ in 0..<2 {
                try store.read { try borrow($0) }
                try store.writeBlocking { try borrow($0.reading) }
            }
        }
    }

    @Test func aValueThatFailsItsMACIsFreed() throws {
        try withTemporaryDirectory { directory in
            let damaged = DamagedLongValue(directory: directory, owner: .nobody)
            try damaged.make(.older)
            let store = try damaged.open()
            defer { store.close() }
            try store.read { transaction in
                let value = try? transaction.get(damaged.table, damaged.key(1))
                let isFreed = transaction.longValues.isEmpty
                #expect(value == nil && isFreed)
            }
        }
    }

    @Test func valuesAreFreedOneByOneAndTogether() throws {
        let values = LongValues()
        let (first, second) = (values.add(byteCount: 10), values.add(byteCount: 20))
        values.remove(UnsafeRawBufferPointer(first))
        #expect(!values.isEmpty)
        // Bytes that were not put together here, such as those in the map, are nothing to free.
        let others = [UInt8](repeating: 0, count: 8)
        others.withUnsafeBytes { values.remove($0) }
        #expect(!values.isEmpty)
        values.beginKeeping()
        values.remove(UnsafeRawBufferPointer(second))
        #expect(!values.isEmpty)
        values.endKeeping()
        values.remove(UnsafeRawBufferPointer(second))
        #expect(values.isEmpty)
        _ = values.add(byteCount: 30)
        _ = values.add(byteCount: 40)
        values.removeAll()
        #expect(values.isEmpty)
    }

    /// The lengths and the bytes of two versions of a value differ, and so do their pieces.
    private static func version(_ number: Int) -> [UInt8] {
        [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 9_000 + number % 7 * 6_000)
    }

    @Test(.timeLimit(.minutes(2))) func aReaderSeesOneVersionOfAValueThatIsRewritten() throws {
        try withTemporaryStore(tables: LongValueTests.tables) { store in
            try store.writeBlocking { try $0.put(blobs, [1], Self.version(0)) }
            let isOver = Counter()
            let faults = Mutex<[String]>([])
            let seen = Mutex<Set<UInt8>>([])
            let readers = (0..<2).map { number in
                OSThread(name: "reader-\(number)") {
                    var lastCount = 0
                    while isOver.value == 0 {
                        do {
                            let value = try store.read { try $0.get(blobs, [1]) } ?? []
                            let isWhole = value.first.map { first in
                                value.count == Self.version(Int(first)).count && value.allSatisfy { $0 == first }
                            }
                            if isWhole != true { faults.withLock { $0.append("\(value.count) bytes") } }
                            if let first = value.first { seen.withLock { _ = $0.insert(first) } }
                        } catch {
                            faults.withLock { $0.append("\(error)") }
                        }
                        lastCount += 1
                    }
                    if lastCount == 0 { faults.withLock { $0.append("nothing was read") } }
                }
            }
            // The numbers stay below 256, so that a version is known by its first byte.
            for number in 1..<252 { try store.writeBlocking { try $0.put(blobs, [1], Self.version(number)) } }
            isOver.add()
            for reader in readers { reader.join() }
            let found = faults.withLock { $0 }
            #expect(found.isEmpty, "\(found.prefix(5))")
            #expect(seen.withLock { $0.count } > 1)
        }
    }
}
