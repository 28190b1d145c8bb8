import Base
import Testing

@testable import Transport

@Suite struct OutputQueueTests {
    private static func sent(_ queue: inout OutputQueue, _ byteCount: Int) -> [UInt8] {
        let bytes = [UInt8](queue.next().prefix(byteCount))
        queue.consume(bytes.count)
        return bytes
    }

    @Test func `Frames leave in the order in which they came`() {
        var queue = OutputQueue()
        for byte in 1...3 as ClosedRange<UInt8> { queue.append { $0.append(contentsOf: [byte, byte]) } }
        #expect(queue.byteCount == 6 && !queue.isEmpty)
        #expect(Self.sent(&queue, 5) == [1, 1, 2, 2, 3])
        #expect(Self.sent(&queue, 5) == [3])
        #expect(queue.isEmpty && Self.sent(&queue, 5) == [])
    }

    @Test func `While the stream is full a frame can go ahead of those that came meanwhile, and inside of none`() {
        var queue = OutputQueue()
        queue.append { $0.append(contentsOf: [1, 1]) }
        #expect(Self.sent(&queue, 1) == [1])
        queue.isBlocked = true
        queue.append { $0.append(contentsOf: [2, 2]) }
        queue.appendAhead { $0.append(contentsOf: [9, 9]) }
        queue.append { $0.append(contentsOf: [3, 3]) }
        queue.isBlocked = false
        #expect(queue.byteCount == 7)
        #expect(Self.sent(&queue, 9) == [1, 9, 9])
        #expect(Self.sent(&queue, 9) == [2, 2, 3, 3])
    }

    @Test func `A queue that sent everything holds no memory but what it may keep`() {
        var queue = OutputQueue()
        queue.append { $0.append(contentsOf: [UInt8](repeating: 1, count: 5_000)) }
        #expect(queue.capacity >= 5_000)
        queue.releaseIfIdle()
        #expect(queue.byteCount == 5_000, "what is not sent stays")
        _ = Self.sent(&queue, 5_000)
        queue.releaseIfIdle(above: 100_000)
        #expect(queue.capacity >= 5_000)
        queue.releaseIfIdle()
        #expect(queue.capacity == 0)
    }
}
