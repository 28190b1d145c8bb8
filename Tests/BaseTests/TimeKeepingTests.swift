import Base
import TestSupport
import Testing

/// The server's time when the wall clock may be wrong.
@Suite struct TimeKeepingTests {
    /// Two clocks, and the `TimeKeeping` between them.
    private struct Machine {
        var wall: Timestamp
        var elapsed = Instant(nanoseconds: 5_000_000_000)
        var keeping: TimeKeeping

        init(wall: Timestamp = Timestamp(seconds: 1_800_000_000), mark: Timestamp? = nil) {
            self.wall = wall
            keeping = TimeKeeping(wall: wall, elapsed: elapsed, mark: mark)
        }

        /// A machine whose clock was right for so long that it is proven.
        static func proven() -> Machine {
            var machine = Machine()
            _ = machine.pass(.minutes(11))
            return machine
        }

        var now: Timestamp { keeping.now(at: elapsed) }

        /// Lets time pass, with a check every ten seconds, and returns what the checks found.
        mutating func pass(_ duration: Duration) -> [TimeKeeping.Notice] {
            var notices: [TimeKeeping.Notice] = []
            var left = duration
            while left > .zero {
                let step = min(left, .seconds(10))
                left -= step
                wall = wall + step
                elapsed = elapsed.advanced(by: step)
                if let notice = keeping.check(wall: wall, elapsed: elapsed) { notices.append(notice) }
            }
            return notices
        }

        mutating func step(_ duration: Duration) { wall = wall + duration }
    }

    @Test func `A clock is proven after ten minutes in which it went with what passed`() {
        var machine = Machine()
        _ = machine.pass(.minutes(10) - .seconds(10))
        #expect(!machine.keeping.isProven)
        _ = machine.pass(.seconds(10))
        #expect(machine.keeping.isProven)
        #expect(machine.now == machine.wall)
    }

    @Test func `A start soon after the last one is proven at once, one after a month is followed and waits`() {
        let wall = Timestamp(seconds: 1_800_000_000)
        let soon = Machine(mark: wall - .minutes(5))
        #expect(soon.keeping.isProven && soon.now == wall)
        var late = Machine(mark: wall - .days(30))
        #expect(!late.keeping.isProven && !late.keeping.isWrong && late.now == wall)
        #expect(late.keeping.earliest(at: late.elapsed) < wall - .days(29))
        _ = late.pass(.minutes(10))
        #expect(late.keeping.isProven)
    }

    @Test func `A start more than a month after the mark is believed like a jump`() {
        let wall = Timestamp(seconds: 1_800_000_000)
        var machine = Machine(mark: wall - .days(400))
        #expect(machine.keeping.isWrong && machine.now < wall - .days(399))
        // The clock is set right: the machine was off for a day.
        var right = machine
        right.step(.zero - .days(399))
        #expect(right.pass(.seconds(10)).count == 1)
        #expect(!right.keeping.isWrong && right.now == right.wall)
        // The clock was right all the time.
        _ = machine.pass(.minutes(11))
        #expect(!machine.keeping.isWrong && machine.now == machine.wall)
    }

    @Test func `A year ahead soon after a start is not followed, two hours are, and 1970 is left at once`() {
        var machine = Machine()
        machine.step(.days(365))
        _ = machine.pass(.minutes(5))
        #expect(machine.now == machine.wall - .days(365) && machine.keeping.isWrong)
        machine.step(.zero - .days(365))
        _ = machine.pass(.seconds(10))
        #expect(machine.now == machine.wall && !machine.keeping.isWrong)
        machine.step(.hours(2))
        _ = machine.pass(.seconds(10))
        #expect(machine.now == machine.wall)
        var old = Machine(wall: Timestamp(seconds: 60))
        old.step(.days(20_000))
        _ = old.pass(.seconds(10))
        #expect(old.now == old.wall)
    }

    @Test(arguments: [Duration.minutes(6), .hours(2), .days(365), .days(40_000)])
    func `A jump ahead changes nothing until it has lasted ten minutes`(jump: Duration) {
        var machine = Machine.proven()
        let before = machine.wall
        machine.step(jump)
        #expect(machine.pass(.minutes(10)) == [.jumpedAhead(by: jump)])
        #expect(machine.now == before + .minutes(10))
        #expect(!machine.keeping.isProven && machine.keeping.isWrong)
        #expect(machine.pass(.seconds(10)) == [.believed(jump: jump)])
        #expect(machine.now == machine.wall)
        #expect(!machine.keeping.isProven)
        _ = machine.pass(.minutes(10))
        #expect(machine.keeping.isProven)
    }

    @Test func `A jump that is taken back in time leaves no trace, and one just believed is taken back too`() {
        var machine = Machine.proven()
        machine.step(.days(365))
        _ = machine.pass(.minutes(9))
        machine.step(.zero - .days(365))
        #expect(machine.pass(.seconds(10)) == [.agreesAgain])
        #expect(machine.keeping.isProven && machine.now == machine.wall)
        machine.step(.days(365))
        _ = machine.pass(.minutes(15))
        #expect(machine.now == machine.wall && !machine.keeping.isProven)
        machine.step(.zero - .days(365))
        _ = machine.pass(.seconds(10))
        #expect(machine.now == machine.wall)
    }

    @Test(arguments: [Duration.minutes(6), .hours(3), .days(20_000)])
    func `A step back changes nothing, however long it lasts`(step: Duration) {
        var machine = Machine.proven()
        let before = machine.wall
        machine.step(.zero - step)
        #expect(machine.pass(.hours(30)) == [.fellBehind(by: step)])
        #expect(machine.now == before + .hours(30))
        #expect(machine.keeping.isWrong)
        machine.step(step)
        #expect(machine.pass(.seconds(10)) == [.agreesAgain])
        #expect(machine.keeping.isProven)
    }

    @Test func `A clock behind the store's mark is not believed at a start, and the first right one is`() {
        let wall = Timestamp(seconds: 1_800_000_000)
        var machine = Machine(mark: wall + .days(30))
        #expect(machine.keeping.isWrong && machine.now == wall + .days(30) + TimeKeeping.markRoughness)
        _ = machine.pass(.minutes(30))
        #expect(machine.now >= wall + .days(30) + .minutes(30))
        // The network's time arrives: the machine had been off for another week.
        machine.step(.days(37))
        _ = machine.pass(.seconds(10))
        #expect(!machine.keeping.isWrong && machine.now == machine.wall)
    }

    @Test func `A new clock that is set again is followed, but not below what is certain`() {
        let wall = Timestamp(seconds: 1_800_000_000)
        var machine = Machine(mark: wall - .hours(8))
        machine.step(.zero - .hours(3))
        #expect(machine.pass(.seconds(10)) == [.followed(step: .zero - .hours(3))])
        #expect(machine.now == machine.wall)
        machine.step(.zero - .hours(6))
        _ = machine.pass(.seconds(10))
        #expect(machine.keeping.isWrong)
        #expect(machine.now >= wall - .hours(8))
    }

    @Test func `A small difference is made good: ahead at once, back at half speed and never backwards`() {
        var machine = Machine.proven()
        machine.step(.minutes(2))
        _ = machine.pass(.seconds(10))
        #expect(machine.now == machine.wall)
        machine.step(.zero - .minutes(4))
        var last = machine.now
        for _ in 0..<60 {
            _ = machine.pass(.seconds(10))
            #expect(machine.now - last >= .seconds(5))
            last = machine.now
        }
        #expect(machine.now == machine.wall && machine.keeping.isProven)
    }

    @Test func `Many small steps ahead are a jump`() {
        var machine = Machine.proven()
        var notices: [TimeKeeping.Notice] = []
        let start = machine.wall
        for _ in 0..<20 {
            machine.step(.minutes(1))
            notices += machine.pass(.seconds(10))
        }
        // Each further step away from a jump is another jump.
        let areJumps = notices.allSatisfy { if case .jumpedAhead = $0 { true } else { false } }
        #expect(!notices.isEmpty && areJumps)
        #expect(machine.now <= start + .seconds(200) + .minutes(6))
    }

    /// Whatever a clock does, a proven time never goes back, and goes forward by at most twice the time that passes
    /// plus `slack`. `earliest` is never after the time.
    @Test func `In generated stories the time keeps its promises`() {
        var random = SeededRandom.printed()
        let steps: [Duration] = [.seconds(1), .minutes(1), .minutes(6), .hours(2), .days(15), .days(365)]
        let passes: [Duration] = [.seconds(1), .seconds(10), .minutes(2), .minutes(11), .hours(2)]
        for story in 0..<1_000 {
            var machine = Machine(mark: random.below(2) == 0 ? nil : Timestamp(seconds: 1_800_000_000 - 86_400))
            for _ in 0..<30 {
                let (before, wasProven, since) = (machine.now, machine.keeping.isProven, machine.elapsed)
                switch random.below(3) {
                case 0: machine.step(steps[random.below(steps.count)])
                case 1: machine.step(.zero - steps[random.below(steps.count)])
                default:
                    let notices = machine.pass(passes[random.below(passes.count)])
                    let passed = Duration.nanoseconds(machine.elapsed.nanoseconds(since: since))
                    let isNew = notices.contains { if case .believed = $0 { true } else { false } }
                    if wasProven, !isNew {
                        #expect(machine.now >= before, "story \(story)")
                        #expect(machine.now - before <= passed + TimeKeeping.slack + passed, "story \(story)")
                    }
                }
                #expect(machine.keeping.earliest(at: machine.elapsed) <= machine.now, "story \(story)")
            }
        }
    }
}
