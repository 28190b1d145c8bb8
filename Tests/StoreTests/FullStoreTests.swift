import Base
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Store

@Suite struct FullStoreTests {
    enum Bound: CaseIterable { case map, disk }

    /// Runs `body` over a store that takes 4 MiB; if a disk is the bound, the store can be told to take more.
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
            try environment.tables.open(in: environment.raw, makingMissing: true)
            let space = try StoreSpace(
                of: environment.raw, tables: environment.tables.allHandles, limits: environment.limits,
                counters: WriteCounters(), onTrouble: { _ in })
            #expect(space.knowsNextPage)
        }
    }

    @Test func theFileIsLongerThanWhatIsWritten() throws {
        try withSmallStore { small in
            for number in 0..<5_000 { try small.put(number) }
            let statistics = try small.store.statistics()
            #expect(statistics.fileByteCount >= Int64(statistics.extentByteCount) + 2 << 20)
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
                            #expect(try transaction.delete(blobs, SmallStore.key(number)))
                            try transaction.put(blobs, SmallStore.key(3_000_000 + number), [1])
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
            #expect(try small.store.writeBlocking { try $0.exists(blobs, SmallStore.key(count - 1)) })
            struct NoSuchUser: Error {}
            #expect(throws: NoSuchUser.self) { try small.store.writeBlocking { _ in throw NoSuchUser() } }
            // Putting the same row again takes no more pages.
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
                        if purpose == .relief { try transaction.delete(blobs, SmallStore.key(number)) }
                        try transaction.put(
                            blobs, SmallStore.key(count + number),
                            [UInt8](repeating: 2, count: purpose == .relief ? 20 : 900))
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
                #expect(try small.store.read { try $0.exists(blobs, SmallStore.key(count + number)) } == (error == nil))
            }
        }
    }

    @Test func aSignInThatMakesAnAccountIsGrowth() throws {
        try withFourMiB(.disk) { small in
            var count = try small.fill()
            // Rows are put until not even one more of this size fits.
            while (try? small.put(count, byteCount: 3_000)) != nil { count += 1 }
            let number = count
            #expect(throws: StoreError.full) {
                try WritePurpose.$current.withValue(.session) {
                    try small.store.writeBlocking { transaction in
                        transaction.countsAsGrowth()
                        try transaction.put(blobs, SmallStore.key(number), [UInt8](repeating: 1, count: 3_000))
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
