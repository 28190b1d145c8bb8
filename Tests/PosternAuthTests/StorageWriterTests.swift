import Base
import Synchronization
import Testing

@testable import PosternAuth

@Suite(.timeLimit(.minutes(2))) struct StorageWriterTests {
    private final class CountingStorage: AuthStorage {
        let saveCount = Atomic(0)
        let stepCount = Atomic(0)

        func load() -> [UInt8]? { nil }
        func save(_ record: [UInt8]) { saveCount.add(1, ordering: .acquiringAndReleasing) }
        func remove() {}
    }

    /// The second record of each round comes at about the moment at which the writing thread ends. Nothing in the
    /// storage marks this moment, so that the test tries many times, a little later each time.
    @Test func `A record that comes while the writer ends is written before its caller goes on`() async {
        let storage = CountingStorage()
        let writer = StorageWriter(storage) { _ in }
        var unwrittenCount = 0
        for round in 0..<5_000 {
            writer.enqueue(.record([1]))
            writer.begin()
            while storage.saveCount.load(ordering: .acquiring) <= 2 * round {}
            for _ in 0..<round % 100 { storage.stepCount.add(1, ordering: .relaxed) }
            writer.enqueue(.record([2]))
            await writer.settled()
            if storage.saveCount.load(ordering: .acquiring) < 2 * (round + 1) {
                unwrittenCount += 1
                await writer.settled()
            }
        }
        #expect(unwrittenCount == 0)
    }
}
