import Base
import Reactor
import Synchronization
import TestSupport
import Testing

@testable import Transport

/// One page per turn of the loop: first come, first served within a line, and one line after another.
@Suite struct PageTurnTests {
    /// Counts the turns of its loop.
    private final class Turns: EndOfTurn, @unchecked Sendable {
        // Unchecked: the class is used on the loop only.
        let loop: EventLoop
        var count = 0
        var isOver = false

        init(_ loop: EventLoop) { self.loop = loop }

        func turnEnded() {
            count += 1
            if !isOver { loop.atEndOfTurn(self) }
        }
    }

    /// The callers on one loop, and the turn in which each made its page.
    private actor Callers {
        nonisolated let loop: EventLoop
        nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
        private let share: LoopShare
        private let turns: Turns
        private var pages: [(caller: Int, turn: Int)] = []
        private var waiting = 0
        private let done = Promise<Void>()

        init(_ loop: EventLoop) {
            self.loop = loop
            share = LoopShare(
                of: loop, number: 0, memory: ConnectionMemory(limits: Limits(), loopCount: 1),
                limits: SharedLimits(Limits()))
            turns = Turns(loop)
        }

        /// `count` callers come in one turn; those of `leaving` give up while they wait.
        func run(
            _ count: Int, leaving: Set<Int>, line: @escaping @Sendable (Int) -> Text = { _ in "one" }
        ) async throws -> [(caller: Int, turn: Int)] {
            loop.atEndOfTurn(turns)
            waiting = count
            var tasks: [Task<Void, Never>] = []
            for caller in 0..<count {
                tasks.append(Task.immediate(executorPreference: loop) { await self.makePage(caller, line(caller)) })
            }
            for caller in leaving { tasks[caller].cancel() }
            try await done.value()
            turns.isOver = true
            return pages
        }

        private func makePage(_ caller: Int, _ line: Text) async {
            do {
                if !share.takePageTurn() { try await share.pageTurn(line: line) }
                pages.append((caller, turns.count))
            } catch {}
            waiting -= 1
            if waiting == 0 { done.succeed(()) }
        }
    }

    /// `join` blocks, so an asynchronous function must not call it.
    private static func end(_ loop: EventLoop) {
        loop.stop()
        loop.join()
    }

    // Fewer callers than the jobs of one turn: of more, those of a later turn would make their pages together.
    @Test(arguments: [1, 2, 3, 50], [0, 1, 7])
    func `Callers make their pages in the order they came, one a turn`(_ count: Int, _ leavingEach: Int) async throws {
        let loop = EventLoop(name: "pages")
        loop.start()
        defer { Self.end(loop) }
        // The first caller has its turn at once and cannot leave the line.
        let leaving = leavingEach == 0 ? [] : Set((1..<max(2, count)).filter { $0 % leavingEach == 0 && $0 < count })
        let pages = try await Callers(loop).run(count, leaving: leaving)
        #expect(pages.map(\.caller) == (0..<count).filter { !leaving.contains($0) })
        for (page, next) in zip(pages, pages.dropFirst()) { #expect(next.turn > page.turn) }
    }

    @Test func `A line of many callers lets another line's only caller through`() async throws {
        let loop = EventLoop(name: "pages")
        loop.start()
        defer { Self.end(loop) }
        let pages = try await Callers(loop).run(51, leaving: [3, 4]) { $0 == 50 ? "calm" : "busy" }
        #expect(pages.count == 49)
        // The first caller had its turn at once, and the busy line came first.
        #expect(try #require(pages.firstIndex { $0.caller == 50 }) <= 2)
    }
}
