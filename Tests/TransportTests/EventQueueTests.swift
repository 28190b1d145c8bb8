import Testing

@testable import Transport

@Suite struct EventQueueTests {
    @Test func `A queue that was long keeps no memory of it`() {
        var queue = EventQueue<Int>()
        for number in 0..<10_000 { queue.append(number) }
        var isInOrder = true
        for number in 0..<10_000 { isInOrder = isInOrder && queue.popFirst() == number }
        #expect(isInOrder && queue.isEmpty)
        #expect(queue.capacity <= 512)
    }

    private final class Message {}

    private struct Remembered {
        weak var message: Message?
    }

    @Test(arguments: [1, 2, 300])
    func `A queue that is never empty keeps no element that was taken`(waitingCount: Int) {
        var queue = EventQueue<Message>()
        var all: [Remembered] = []
        func append() {
            let message = Message()
            all.append(Remembered(message: message))
            queue.append(message)
        }
        for _ in 0..<waitingCount { append() }
        for _ in 0..<200 {
            append()
            _ = queue.popFirst()
        }
        let kept = all.count { $0.message != nil }
        #expect(kept == waitingCount)
        #expect(all.prefix(200).allSatisfy { $0.message == nil })
    }

    @Test func `Unwanted elements go, and the others stay in their order`() {
        var queue = EventQueue<Int>()
        for number in 0..<10 { queue.append(number) }
        _ = queue.popFirst()
        _ = queue.popFirst()
        queue.removeAll { $0 % 3 == 0 }
        #expect(queue.sum { $0 } == 2 + 4 + 5 + 7 + 8)
        var left: [Int] = []
        while let number = queue.popFirst() { left.append(number) }
        #expect(left == [2, 4, 5, 7, 8])
    }
}
