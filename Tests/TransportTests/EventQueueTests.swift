import Testing

@testable import Transport

@Suite struct EventQueueTests {
    @Test func `A queue that was long keeps no memory of it`() {
        var queue = EventQueue<Int>()
        for number in 0..<10_000 { queue.append(number) }
        var isInOrder = true
        for number in 0..<10_000 { isInOrder = isInOrder && queue.popFirst() == number }
        #expect(isInOrder && queue.isEmpty)
        #expect(queue.elements.capacity <= 512)
    }
}
