import Base
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Store

/// A disk with room for so many bytes of a file, as far as growing it goes; nil: as much as there is.
private final class SmallDisk: Sendable {
    private let room = Mutex<Int?>(nil)

    func set(room bytes: Int?) { room.withLock { $0 = bytes } }

    var allocate: FileGrowth.Allocate {
        { [self] file, offset, byteCount in
            if let room = room.withLock({ $0 }), offset + byteCount > room { return ENOSPC }
            return FileGrowth.system(file, offset, byteCount)
        }
    }
}

/// A store over a `SmallDisk`, and what it said of its troubles.
private struct SmallStore {
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
            try store.writeBlocking { try $0.put(blobs, key(number), [UInt8](repeating: 1, count: byteCount)) }
        }
    }

    /// Puts rows from `first` on, ten at a time, until they are refused; the number of the first that was.
    func fill(from first: Int = 0, for purpose: WritePurpose = .growth) throws -> Int {
        var number = first
        while true {
            do {
                try WritePurpose.$current.withValue(purpose) {
                    try store.writeBlocking { [number] transaction in
                        for number in number..<number + 10 {
                            try transaction.put(blobs, key(number), [UInt8](repeating: 1, count: 300))
                        }
                    }
                }
            } catch StoreError.full {
                return number
            }
            number += 10
        }
    }
}

/// Spread over the table, so that neighbours in time do not share a page.
private func key(_ number: Int) -> [UInt8] {
    let scattered = UInt32(truncatingIfNeeded: number) &* 2_654_435_761
    return withUnsafeBytes(of: scattered.bigEndian) { [UInt8]($0) }
}

private func withSmallStore(mapByteCount: Int = 256 << 20, _ body: (SmallStore) throws -> Void) throws {
    try withTemporaryDirectory { directory in
        let small = try SmallStore(directory, mapByteCount: mapByteCount)
        defer { small.store.close() }
        try body(small)
    }
}

@Suite struct FullStoreTests {
    enum Bound: CaseIterable { case map, disk }

    /// Runs `body` over a store that takes 4 MiB, and can be told to take more if a disk is what bounds it.
    private func withFourMiB(_ bound: Bound, _ body: (SmallStore) throws -> Void) throws {
        try withSmallStore(mapByteCount: bound == .map ? 4 << 20 : 256 << 20) { small in
            if bound == .disk { small.disk.set(room: 4 << 20) }
            try body(small)
        }
    }

    @Test func theLayoutOfATransactionIsWhatWeTakeItFor() throws {
        try withTemporaryDirectory { directory in
            let environment = try Environment(
                StoreConfiguration(directory: directory, tables: testTables), authenticator: TestAuthenticator(),
                eventHash: testEventHash)
            defer { environment.close() }
            #expect(try StoreSpace(environment, counters: WriteCounters()).knowsNextPage)
        }
    }

    @Test func theFileIsLongerThanWhatIsWritten() throws {
        try withSmallStore { small in
            for number in 0..<5_000 { try small.put(number) }
            let statistics = try small.store.statistics()
            #expect(statistics.fileByteCount >= Int64(statistics.usedByteCount) + 2 << 20)
            #expect(!statistics.isDegraded)
        }
    }

    @Test(arguments: Bound.allCases)
    func aFullStoreKeepsItsReserveForRelief(_ bound: Bound) throws {
        try withFourMiB(bound) { small in
            let count = try small.fill()
            #expect(count > 1_000)
            #expect(small.troubles.all == ["\(bound == .map ? StoreTrouble.mapFull : .diskFull)"])
            #expect(try small.store.statistics().isDegraded)
            #expect(try small.store.statistics().refusals > 0)
            let sessions = try small.fill(from: 1_000_000, for: .session) - 1_000_000
            #expect(sessions > 50)
            let revocations = try small.fill(from: 2_000_000, for: .relief) - 2_000_000
            #expect(revocations > 50)
            // Every row of 300 bytes can still be deleted, with a row that tells of it.
            for first in stride(from: 0, to: count, by: 2) {
                try WritePurpose.$current.withValue(.removal) {
                    try small.store.writeBlocking { transaction in
                        for number in first..<first + 2 {
                            #expect(try transaction.delete(blobs, key(number)))
                            try transaction.put(blobs, key(3_000_000 + number), [1])
                        }
                    }
                }
            }
            try small.put(0)
            #expect(small.troubles.all.last == "none")
            #expect(try small.store.read { try $0.count(blobs) } == sessions + revocations + count + 1)
        }
    }

    @Test func freedSpaceOnTheDiskIsFoundWithoutARestart() throws {
        try withFourMiB(.disk) { small in
            let count = try small.fill()
            small.disk.set(room: nil)
            try small.put(count)
            #expect(small.troubles.all == ["\(StoreTrouble.diskFull)", "none"])
            #expect(try small.store.statistics().isDegraded == false)
        }
    }

    @Test(arguments: Bound.allCases)
    func whatChangesNothingIsAnsweredByAFullStore(_ bound: Bound) throws {
        try withFourMiB(bound) { small in
            let count = try small.fill()
            #expect(try small.store.writeBlocking { try $0.exists(blobs, key(count - 1)) })
            struct NoSuchUser: Error {}
            #expect(throws: NoSuchUser.self) { try small.store.writeBlocking { _ in throw NoSuchUser() } }
            // The same row again takes no more pages.
            try small.put(0)
        }
    }

    @Test(arguments: Bound.allCases)
    func reliefGoesThroughBesideRefusedWritesOfItsBatch(_ bound: Bound) throws {
        try withFourMiB(bound) { small in
            let count = try small.fill()
            let (entered, opened, arrived) = (Semaphore(), Semaphore(), Semaphore())
            try small.store.write { _ in
                entered.signal()
                opened.wait()
            } completion: { _ in
            }
            entered.wait()
            let outcomes = Mutex<[Int: StoreError?]>([:])
            for number in 0..<100 {
                let purpose = number % 4 == 0 ? WritePurpose.relief : .growth
                try WritePurpose.$current.withValue(purpose) {
                    try small.store.write { transaction in
                        if purpose == .relief { try transaction.delete(blobs, key(number)) }
                        try transaction.put(
                            blobs, key(count + number), [UInt8](repeating: 2, count: purpose == .relief ? 20 : 900))
                    } completion: { result in
                        var error: StoreError?
                        if case .failure(let failure) = result { error = failure as? StoreError }
                        outcomes.withLock { $0[number] = error }
                        arrived.signal()
                    }
                }
            }
            opened.signal()
            for _ in 0..<100 { arrived.wait() }
            for (number, error) in outcomes.withLock({ $0 }) {
                #expect(error == (number % 4 == 0 ? nil : .full), "\(number)")
                #expect(try small.store.read { try $0.exists(blobs, key(count + number)) } == (error == nil))
            }
        }
    }

    @Test func aSignInThatMakesAnAccountIsGrowth() throws {
        try withFourMiB(.disk) { small in
            var count = try small.fill()
            // Until not even one more row of this size fits.
            while (try? small.put(count, byteCount: 3_000)) != nil { count += 1 }
            let number = count
            #expect(throws: StoreError.full) {
                try WritePurpose.$current.withValue(.session) {
                    try small.store.writeBlocking { transaction in
                        transaction.countsAsGrowth()
                        try transaction.put(blobs, key(number), [UInt8](repeating: 1, count: 3_000))
                    }
                }
            }
            try small.put(count, byteCount: 3_000, for: .session)
        }
    }

    @Test func aFullDiskIsKnownAfterAStart() throws {
        try withTemporaryDirectory { directory in
            var count = 0
            do {
                let small = try SmallStore(directory)
                defer { small.store.close() }
                small.disk.set(room: 4 << 20)
                count = try small.fill()
            }
            let again = try SmallStore(directory)
            defer { again.store.close() }
            again.disk.set(room: 4 << 20)
            #expect(try again.fill(from: count) - count < 200)
            try again.put(-1, for: .relief)
        }
    }
}

@Suite struct FailedCommitTests {
    /// What mdb_txn_commit returns next; 0: the truth.
    private func withFailingCommits(_ body: (SmallStore, borrowing Atomic<Int32>) throws -> Void) throws {
        let code = Box()
        try withTemporaryDirectory { directory in
            let small = try SmallStore(directory) { real in
                let wanted = code.value.load(ordering: .relaxed)
                return wanted == 0 ? real : wanted
            }
            defer { small.store.close() }
            try body(small, code.value)
        }
    }

    private final class Box: Sendable { let value = Atomic<Int32>(0) }

    @Test func aShortWriteOnAFullDiskIsNotAFailedDisk() throws {
        try withFailingCommits { small, code in
            try small.put(1)
            small.disk.set(room: 4 << 20)
            code.store(EIO, ordering: .relaxed)
            #expect(throws: StoreError.full) { try small.put(2) }
            #expect(small.reported.all.isEmpty)
            #expect(small.troubles.all == ["\(StoreTrouble.diskFull)"])
            code.store(0, ordering: .relaxed)
            try small.put(2)
            #expect(small.troubles.all.last == "none")
        }
    }

    @Test func aFailedDiskWithRoomIsFatal() throws {
        try withFailingCommits { small, code in
            code.store(EIO, ordering: .relaxed)
            #expect(throws: StoreError.fatal(code: EIO)) { try small.put(2) }
            #expect(small.reported.all == ["\(StoreError.fatal(code: EIO))"])
        }
    }

    @Test(arguments: [ENOSPC, EDQUOT])
    func aDiskThatIsFullOnlyInTheCommitIsFull(_ number: Int32) throws {
        try withFailingCommits { small, code in
            code.store(number, ordering: .relaxed)
            #expect(throws: StoreError.full) { try small.put(2) }
            #expect(small.troubles.all == ["\(StoreTrouble.diskFull)"])
        }
    }

    @Test func aReadOnlyDiskTakesNoWritesAndAnswersReads() throws {
        try withFailingCommits { small, code in
            try small.put(1)
            code.store(EROFS, ordering: .relaxed)
            for _ in 0..<3 { #expect(throws: StoreError.self) { try small.put(2) } }
            #expect(small.troubles.all == ["\(StoreTrouble.readOnly)"])
            #expect(small.reported.all.isEmpty)
            #expect(try small.store.read { try $0.exists(blobs, key(1)) })
            code.store(0, ordering: .relaxed)
            try small.put(2)
            #expect(small.troubles.all.last == "none")
        }
    }

    @Test func aRemovedFileIsNotWrittenToAndEndsTheServer() throws {
        try withTemporaryDirectory { directory in
            let small = try SmallStore(directory)
            defer { small.store.close() }
            try small.put(1)
            unlink("\(directory)/data.mdb")
            #expect(throws: StoreError.removed) { try small.put(2) }
            #expect(small.troubles.all == ["\(StoreTrouble.removed)"])
            #expect(small.reported.all == ["\(StoreError.removed)"])
            #expect(try small.store.read { try $0.exists(blobs, key(1)) })
        }
    }
}

@Suite struct SpaceRulesTests {
    private let rules = SpaceRules(Limits(), pageByteCount: 4_096)

    @Test(arguments: [
        (reached: 100, limit: 1 << 24, expected: 512), (100_000, 1 << 24, 6_250), (10_000_000, 1 << 24, 16_384),
        (100, 256, 32), (2_000, 2_048, 256), (0, 0, 0),
    ])
    func theReserveGrowsWithTheStoreWithinBounds(_ reached: Int, _ limit: Int, _ expected: Int) {
        #expect(rules.reserve(reached: reached, limit: limit) == expected)
    }

    @Test func eachPurposeLeavesLessFree() {
        #expect(rules.floor(.growth, reserve: 512) == 512)
        #expect(rules.floor(.session, reserve: 512) == 256)
        #expect(rules.floor(.relief, reserve: 512) == 64)
        #expect(rules.floor(.removal, reserve: 512) == 0)
    }

    @Test func growthTargetsFallAndEndAtWhatIsNeeded() {
        #expect(
            rules.growthTargets(reached: 1_000, reserve: 512, limit: 1 << 20) == [
                1_768, 1_512, 1_256, 1_128, 1_064, 1_000,
            ])
        #expect(rules.growthTargets(reached: 1_000, reserve: 512, limit: 1_024) == [1_024, 1_000])
    }
}
