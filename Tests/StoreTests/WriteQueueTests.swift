import Base
import TestSupport
import Testing

@testable import Store

@Suite(.timeLimit(.minutes(1))) struct WriteQueueTests {
    private static let longTime = Duration.minutes(10)

    private func request() -> WriteRequest { TypedWriteRequest<Void>({ _ in }, .callback({ _ in })) }

    private func fill(_ queue: WriteQueue, _ count: Int) throws {
        for _ in 0..<count { try queue.add(request()) }
    }

    private func count(_ taken: WriteQueue.Taken) -> Int? {
        if case .batch(let requests) = taken { requests.count } else { nil }
    }

    /// What `body` does, on a thread of its own that is waited for.
    private func onThread(_ body: @escaping @Sendable () -> Void, while other: () throws -> Void) rethrows {
        let thread = OSThread(name: "writer", body)
        defer { thread.join() }
        try other()
    }

    @Test func gatheringEndsWithTheLastOneThatIsExpected() throws {
        let queue = WriteQueue(countMax: 16)
        try onThread({ queue.gather(3, patience: Self.longTime) }) { try fill(queue, 3) }
        try onThread({ queue.putOff(Self.longTime, orUntil: 6) }) { try fill(queue, 3) }
        #expect(count(queue.take(countMax: 16, deadline: nil)) == 6)
    }

    @Test func whatIsThereIsNotWaitedFor() throws {
        let queue = WriteQueue(countMax: 16)
        try fill(queue, 3)
        queue.gather(2, patience: Self.longTime)
        queue.putOff(Self.longTime, orUntil: 2)
        #expect(queue.count == 3)
    }

    @Test func gatheringEndsWithItsPatience() throws {
        let queue = WriteQueue(countMax: 16)
        try fill(queue, 1)
        queue.gather(2, patience: .milliseconds(1))
        queue.putOff(.milliseconds(1), orUntil: 2)
        #expect(count(queue.take(countMax: 16, deadline: nil)) == 1)
    }

    @Test func closingEndsGathering() throws {
        let queue = WriteQueue(countMax: 16)
        onThread({ queue.putOff(Self.longTime, orUntil: 2) }) { queue.close(with: .closed) }
        queue.gather(2, patience: Self.longTime)
        #expect(throws: StoreError.closed) { try queue.add(request()) }
    }

    @Test func anEmptyQueueIsWaitedForAfterPuttingOffInVain() throws {
        let queue = WriteQueue(countMax: 16)
        queue.putOff(.milliseconds(1), orUntil: 2)
        try onThread({ _ = queue.take(countMax: 16, deadline: nil) }) { try fill(queue, 1) }
        #expect(queue.count == 0)
    }

    /// However much time there is to spare, a commit comes.
    @Test func aCommitIsPutOffOnlyALittle() async throws {
        try await withTemporaryStore(tables: testTables) {
            $0.spareTime = { Self.longTime }
        } _: { store in
            for number in UInt8(0)..<4 { try await store.write { try $0.put(blobs, [number], [1]) } }
            #expect(try store.read { try $0.get(blobs, [3]) } == [1])
        }
    }
}
