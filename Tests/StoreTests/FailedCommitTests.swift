import Base
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Store

@Suite struct FailedCommitTests {
    /// Runs `body` with the code that mdb_txn_commit returns next; 0 stands for the real one.
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
            #expect(try small.store.read { try $0.exists(blobs, SmallStore.key(1)) })
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
            #expect(try small.store.read { try $0.exists(blobs, SmallStore.key(1)) })
        }
    }

    @Test(.timeLimit(.minutes(2))) func aCommitThatTheDiskHoldsUpIsSeenMeanwhile() throws {
        let (isHeld, entered, opened) = (Box(), Semaphore(), Semaphore())
        try withTemporaryDirectory { directory in
            let small = try SmallStore(directory) { code in
                if isHeld.value.load(ordering: .relaxed) != 0 {
                    entered.signal()
                    opened.wait()
                }
                return code
            }
            defer { small.store.close() }
            try small.put(1)
            #expect(small.store.diskWait == .zero)
            isHeld.value.store(1, ordering: .relaxed)
            try small.store.write {
                try $0.put(blobs, [2], [1])
            } completion: { _ in
            }
            entered.wait()
            let before = small.store.diskWait
            let statistics = try? small.store.statistics()
            #expect(before > .zero && !small.store.isDiskSilent)
            #expect(statistics.map { $0.diskWait >= before } == true)
            isHeld.value.store(0, ordering: .relaxed)
            opened.signal()
            try small.put(3)
            #expect(small.store.diskWait == .zero)
        }
    }
}
