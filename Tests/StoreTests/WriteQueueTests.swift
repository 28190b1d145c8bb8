import Base
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Store

@Suite(.timeLimit(.minutes(3))) struct WriteQueueTests {
    private static let longTime = Duration.minutes(10)

    private func fill(_ queue: WriteQueue, _ count: Int, mayBePutOff: Bool = true) throws {
        for _ in 0..<count {
            try queue.add(WriteRequest(mayBePutOff: mayBePutOff, { _ in }, .callback({ _ in })))
        }
    }

    private func count(_ taken: WriteQueue.Taken) -> Int? {
        if case .batch(let requests) = taken { requests.count } else { nil }
    }

    /// Runs `writer` on a thread of its own and, while that sleeps, `other`, which ends it.
    private func sleeping(
        on queue: WriteQueue, _ writer: @escaping @Sendable () -> Void, while other: () throws -> Void
    ) throws {
        let ended = Semaphore()
        let thread = OSThread(name: "writer") {
            writer()
            ended.signal()
        }
        try blockUntil("the writer sleeps") { queue.isAwaited }
        try other()
        try blockUntil("the writer wakes") { ended.takeSignal() }
        thread.join()
    }

    @Test func puttingOffEndsWithTheLastOneThatIsWanted() throws {
        let queue = WriteQueue(countMax: 16)
        try sleeping(on: queue, { queue.putOff(Self.longTime, orUntil: 3) }) { try fill(queue, 3) }
        #expect(count(queue.take(countMax: 16, deadline: nil)) == 3)
    }

    @Test func whatIsThereIsNotWaitedFor() throws {
        let queue = WriteQueue(countMax: 16)
        try fill(queue, 3)
        queue.putOff(Self.longTime, orUntil: 2)
        #expect(queue.count == 3)
    }

    @Test func puttingOffEndsWithItsTime() throws {
        let queue = WriteQueue(countMax: 16)
        try fill(queue, 1)
        queue.putOff(.milliseconds(1), orUntil: 2)
        #expect(count(queue.take(countMax: 16, deadline: nil)) == 1)
    }

    /// A writer that has nothing to do sleeps once, and asks when there is something to put off.
    @Test func onlyWritesThatWaitArePutOff() throws {
        let queue = WriteQueue(countMax: 16)
        let asked = Atomic(0)
        let taken = Atomic(0)
        let writer: @Sendable () -> Void = {
            let batch = queue.take(countMax: 16, deadline: nil) {
                asked.add(1, ordering: .relaxed)
                return Self.longTime
            }
            if case .batch(let requests) = batch { taken.store(requests.count, ordering: .relaxed) }
        }
        try sleeping(on: queue, writer) {
            #expect(asked.load(ordering: .relaxed) == 0)
            try fill(queue, 1)
            try blockUntil("the writer puts the write off") { asked.load(ordering: .relaxed) == 1 && queue.isAwaited }
            try fill(queue, 1, mayBePutOff: false)
        }
        #expect(taken.load(ordering: .relaxed) == 2)
    }

    @Test func heldWakeUpsLetWritesComeTogether() throws {
        let queue = WriteQueue(countMax: 16)
        let taken = Atomic(0)
        let writer: @Sendable () -> Void = {
            guard case .batch(let requests) = queue.take(countMax: 16, deadline: nil) else { return }
            taken.store(requests.count, ordering: .relaxed)
        }
        try sleeping(on: queue, writer) {
            let held = HeldWakeups()
            held.begin()
            try fill(queue, 3)
            #expect(queue.isAwaited)
            held.end()
        }
        #expect(taken.load(ordering: .relaxed) == 3)
    }

    /// Otherwise a thread that waits for what the other thread does would wait for ever.
    @Test func aThreadThatSleepsWakesFirstWhomItPutOff() throws {
        let queue = WriteQueue(countMax: 16)
        let done = Semaphore()
        let writer: @Sendable () -> Void = {
            _ = queue.take(countMax: 16, deadline: nil)
            done.signal()
        }
        try sleeping(on: queue, writer) {
            let held = HeldWakeups()
            held.begin()
            defer { held.end() }
            try fill(queue, 1)
            #expect(queue.isAwaited)
            done.wait()
        }
    }

    @Test func nothingUrgentIsPutOff() throws {
        let queue = WriteQueue(countMax: 16)
        try fill(queue, 2)
        try sleeping(on: queue, { queue.putOff(Self.longTime, orUntil: 16) }) {
            try fill(queue, 1, mayBePutOff: false)
        }
        // The request is urgent until it is taken, and not after that.
        queue.putOff(Self.longTime, orUntil: 16)
        #expect(count(queue.take(countMax: 2, deadline: nil)) == 2)
        queue.putOff(Self.longTime, orUntil: 16)
        #expect(count(queue.take(countMax: 2, deadline: nil)) == 1)
        queue.putOff(.milliseconds(1), orUntil: 16)
        try sleeping(on: queue, { queue.putOff(Self.longTime, orUntil: 2) }) { try fill(queue, 2) }
    }

    @Test func closingWakesTheWriter() throws {
        let queue = WriteQueue(countMax: 16)
        try sleeping(on: queue, { queue.putOff(Self.longTime, orUntil: 2) }) { queue.close(with: .closed) }
        queue.putOff(Self.longTime, orUntil: 2)
        #expect(throws: StoreError.closed) { try fill(queue, 1) }
    }

    @Test func aRequestIsFinishedOnce() {
        struct Refused: Error, Equatable {}
        let results = Mutex<[Result<Int, any Error>]>([])
        let note: @Sendable (Result<Int, any Error>) -> Void = { result in results.withLock { $0.append(result) } }
        let request = WriteRequest({ _ in 1 }, .callback(note))
        request.error = Refused()
        request.finish()
        request.error = nil
        request.finish()
        #expect(throws: Refused()) { try results.withLock { $0.count == 1 ? $0.first : nil }?.get() }
    }

    @Test func anEmptyQueueIsWaitedForAfterPuttingOffInVain() throws {
        let queue = WriteQueue(countMax: 16)
        queue.putOff(.milliseconds(1), orUntil: 2)
        try sleeping(on: queue, { _ = queue.take(countMax: 16, deadline: nil) }) { try fill(queue, 1) }
        #expect(queue.count == 0)
    }

    /// A commit comes however much time there is to spare. A write that may not be put off takes the others along.
    @Test func aCommitIsPutOffOnlyALittle() async throws {
        try await withTemporaryStore(tables: testTables) {
            $0.spareTime = { Self.longTime }
        } _: { store in
            for number in UInt8(0)..<4 {
                try await store.write(mayBePutOff: number % 2 == 0) { try $0.put(blobs, [number], [1]) }
            }
            #expect(try store.read { try $0.get(blobs, [3]) } == [1])
        }
    }
}
