import Base
import Synchronization
import Testing

@Suite struct ServerClockTests {
    @Test func `Readers beside a writer never see half a change`() {
        let manual = ManualClock()
        let clock = ServerClock(manual.machine)
        _ = clock.begin(mark: nil)
        let start = manual.clock.now()
        let isOver = Atomic<Bool>(false)
        let worst = Mutex<(early: Timestamp, late: Timestamp)>((start, start))
        let readers = (0..<2).map { number in
            OSThread(name: "reader \(number)") {
                while !isOver.load(ordering: .relaxed) {
                    let now = clock.now()
                    worst.withLock { $0 = (min($0.early, now), max($0.late, now)) }
                }
            }
        }
        for _ in 0..<20_000 {
            manual.advance(by: .seconds(1))
            manual.step(by: .milliseconds(2))
            _ = clock.check()
        }
        isOver.store(true, ordering: .relaxed)
        for reader in readers { reader.join() }
        #expect(worst.withLock { $0.early } >= start)
        #expect(worst.withLock { $0.late } <= manual.clock.now())
    }

    @Test func `The steady clock knows nothing of the wall clock`() {
        let manual = ManualClock()
        let clock = ServerClock(manual.machine)
        let steady = clock.steadyClock
        let start = steady.now()
        for step in [Duration.hours(5), .zero - .days(9)] {
            manual.step(by: step)
            _ = clock.check()
            #expect(steady.now() == start)
        }
        manual.advance(by: .seconds(3))
        #expect(steady.now() == start + .seconds(3))
    }

    @Test func `There is a mark only while the clock is proven`() {
        let manual = ManualClock()
        let clock = ServerClock(manual.machine)
        #expect(clock.begin(mark: nil) == nil)
        #expect(clock.mark == nil)
        manual.advance(by: .minutes(10))
        _ = clock.check()
        #expect(clock.mark == manual.clock.now())
        manual.step(by: .days(9))
        _ = clock.check()
        #expect(clock.mark == manual.clock.now() - .days(9))
    }

    @Test func `A start behind the mark says so, and goes by the machine when an operator says that it is right`() {
        let manual = ManualClock()
        let mark = manual.clock.now() + .days(2)
        let clock = ServerClock(manual.machine)
        guard case .fellBehind? = clock.begin(mark: mark) else { Issue.record("nothing said"); return }
        #expect(clock.now() > mark && clock.isWrong)
        #expect(clock.begin(mark: mark, acceptsWall: true) == nil)
        #expect(clock.now() == manual.clock.now() && clock.isProven)
    }
}
