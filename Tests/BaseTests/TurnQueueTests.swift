import Base
import Testing

@Suite struct TurnQueueTests {
    @Test func `Turns come in the order in which they were asked for`() async throws {
        var turns = TurnQueue()
        let first = turns.take()
        #expect(first == nil)
        let second = turns.take()
        let third = turns.take()
        #expect(second != nil && third != nil && turns.waitingCount == 2)
        turns.pass()
        try await second?.value()
        #expect(turns.waitingCount == 1)
        let fourth = turns.take()
        #expect(fourth != nil)
        turns.pass()
        try await third?.value()
        turns.pass()
        try await fourth?.value()
        turns.pass()
        let next = turns.take()
        #expect(next == nil && turns.waitingCount == 0)
    }
}
