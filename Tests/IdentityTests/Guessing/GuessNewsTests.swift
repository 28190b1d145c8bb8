import Base
import Testing

@testable import Identity
@testable import Store

@Suite struct GuessNewsTests {
    private static func key(_ row: UInt64, server: UInt64 = 2) -> GuessRowKey {
        GuessRowKey(time: Timestamp(microseconds: 1), serverID: server, row: row)
    }

    private static func snapshot(_ number: UInt64) -> Snapshot { Snapshot(transactionID: number) }

    @Test func aRowIsToldOnceAndNotOnesOwn() {
        var news = GuessNews(ownID: 1, countMax: 10)
        #expect(news.came([Self.key(1)], in: Self.snapshot(3)) == 0)
        #expect(news.came([Self.key(2), Self.key(3, server: 1)], in: Self.snapshot(5)) == 0)
        // While the start reads, no row is told: the start may have seen it.
        #expect(news.take().isEmpty)
        news.started(in: Self.snapshot(4))
        #expect(news.take() == [Self.key(2)])
        #expect(news.came([Self.key(4)], in: Self.snapshot(4)) == 0)
        #expect(news.came([Self.key(5)], in: Self.snapshot(6)) == 0)
        #expect(news.take() == [Self.key(5)])
        #expect(news.take().isEmpty)
    }

    @Test func soManyRowsWaitAndNoMore() {
        var news = GuessNews(ownID: 1, countMax: 3)
        #expect(news.came((0..<3).map { Self.key($0) }, in: Self.snapshot(2)) == 0)
        #expect(news.came((3..<5).map { Self.key($0) }, in: Self.snapshot(2)) == 2)
        news.started(in: Self.snapshot(1))
        let taken = news.take()
        #expect(taken == (0..<3).map { Self.key($0) })
        #expect(news.came([Self.key(9)], in: Self.snapshot(3)) == 0)
        #expect(news.giveBack(taken) == 1)
        #expect(news.take() == [Self.key(9), Self.key(0), Self.key(1)])
    }
}
