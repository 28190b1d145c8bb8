import Base
import Glibc
import Synchronization
import TestSupport

@testable import Store

/// A disk with room for so many bytes of a file that grows; nil: as much as there is.
final class SmallDisk: Sendable {
    private let room = Mutex<Int?>(nil)

    func set(room bytes: Int?) { room.withLock { $0 = bytes } }

    var allocate: FileGrowth.Allocate {
        { [self] file, offset, byteCount in
            if let room = room.withLock({ $0 }), offset + byteCount > room { return ENOSPC }
            return FileGrowth.system(file, offset, byteCount)
        }
    }
}

/// A store over a `SmallDisk`, and the troubles that it reported.
struct SmallStore {
    let store: Store
    let disk = SmallDisk()
    let troubles: Troubles
    let reported: Troubles

    final class Troubles: Sendable {
        private let list = Mutex<[String]>([])
        func add(_ text: String) { list.withLock { $0.append(text) } }
        var all: [String] { list.withLock { $0 } }
    }

    init(
        _ directory: String, mapByteCount: Int = 256 << 20, commitOutcome: @escaping @Sendable (Int32) -> Int32 = { $0 }
    ) throws {
        let (troubles, reported) = (Troubles(), Troubles())
        var configuration = StoreConfiguration(directory: directory, tables: testTables)
        configuration.mapByteCount = mapByteCount
        configuration.limits.fullDiskRetryInterval = .zero
        configuration.limits.removedStoreGrace = .zero
        configuration.onTrouble = { troubles.add($0.map { "\($0)" } ?? "none") }
        let environment = try Environment(
            configuration, authenticator: TestAuthenticator(), eventHash: testEventHash)
        let disk = disk
        self.store = try Store(environment) { counters throws(StoreError) in
            try Writer(
                environment, counters: counters, onFatal: { reported.add("\($0)") }, allocate: disk.allocate,
                commitOutcome: commitOutcome)
        }
        (self.troubles, self.reported) = (troubles, reported)
    }

    func put(_ number: Int, byteCount: Int = 300, for purpose: WritePurpose = .growth) throws {
        try WritePurpose.$current.withValue(purpose) {
            try store.writeBlocking { try $0.put(blobs, Self.key(number), [UInt8](repeating: 1, count: byteCount)) }
        }
    }

    /// Puts rows from `first` on, ten at a time, until they are refused; returns the number of the first refused row.
    func fill(from first: Int = 0, for purpose: WritePurpose = .growth) throws -> Int {
        var number = first
        while true {
            do {
                try WritePurpose.$current.withValue(purpose) {
                    try store.writeBlocking { [number] transaction in
                        for number in number..<number + 10 {
                            try transaction.put(blobs, Self.key(number), [UInt8](repeating: 1, count: 300))
                        }
                    }
                }
            } catch StoreError.full {
                return number
            }
            number += 10
        }
    }

    /// The keys are spread over the table, so that neighbours in time do not share a page.
    static func key(_ number: Int) -> [UInt8] {
        let scattered = UInt32(truncatingIfNeeded: number) &* 2_654_435_761
        return withUnsafeBytes(of: scattered.bigEndian) { [UInt8]($0) }
    }
}

func withSmallStore(mapByteCount: Int = 256 << 20, _ body: (SmallStore) throws -> Void) throws {
    try withTemporaryDirectory { directory in
        let small = try SmallStore(directory, mapByteCount: mapByteCount)
        defer { small.store.close() }
        try body(small)
    }
}
