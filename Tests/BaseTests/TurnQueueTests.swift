import Testing

@testable import Base

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

    @Test(arguments: [1, 63, 64, 200])
    func `A queue that is never empty remembers few who had their turn`(waitingCount: Int) async throws {
        var turns = TurnQueue()
        _ = turns.take()
        var waiting = (0..<waitingCount).compactMap { _ in turns.take() }
        for _ in 0..<5_000 {
            turns.pass()
            try await waiting.removeFirst().value()
            let turn = turns.take()
            waiting.append(try #require(turn))
            #expect(turns.waitingCount == waitingCount)
            #expect(turns.rememberedCount <= 2 * waitingCount + 65)
        }
        for _ in 0..<waitingCount {
            turns.pass()
            try await waiting.removeFirst().value()
        }
        turns.pass()
        #expect(turns.waitingCount == 0 && turns.rememberedCount == 0)
    }
}
