import Base
import Testing

@testable import PosternBench

@Suite struct ScheduleTests {
    private static func times(
        _ text: String, _ pattern: ArrivalPattern, seconds: Double, seed: UInt64 = 1, share: (Int, Int) = (0, 1)
    ) throws -> [Double] {
        var arrivals = Arrivals(try RateSchedule(parsing: text), pattern, seed: seed, share: share)
        var times: [Double] = []
        while let nanoseconds = arrivals.next(), Double(nanoseconds) < seconds * 1e9 {
            times.append(Double(nanoseconds) / 1e9)
        }
        return times
    }

    private static func count(_ times: [Double], in range: Range<Double>) -> Int {
        times.filter { range.contains($0) }.count
    }

    @Test func `Uniform arrivals lie at the same distance`() throws {
        let times = try Self.times("100", .uniform, seconds: 2)
        #expect(times.count == 200 && times[0] == 0)
        for (first, second) in zip(times, times.dropFirst()) { #expect(abs(second - first - 0.01) < 1e-6) }
    }

    @Test func `Poisson arrivals have the rate, and gaps of an exponential distribution`() throws {
        let times = try Self.times("1000", .poisson, seconds: 100)
        #expect(abs(times.count - 100_000) < 1_300)  // four standard deviations
        let gaps = zip(times, times.dropFirst()).map { $1 - $0 }
        for (gap, share) in [(0.0005, 0.3935), (0.001, 0.6321), (0.003, 0.9502)] {
            #expect(abs(Double(gaps.filter { $0 < gap }.count) / Double(gaps.count) - share) < 0.01)
        }
    }

    @Test func `The seed fixes all arrivals, and threads share them`() throws {
        let all = try Self.times("500", .poisson, seconds: 5, seed: 9)
        #expect(try Self.times("500", .poisson, seconds: 5, seed: 9) == all)
        #expect(try Self.times("500", .poisson, seconds: 5, seed: 10) != all)
        let parts = try (0..<3).map { try Self.times("500", .poisson, seconds: 5, seed: 9, share: ($0, 3)) }
        #expect(parts.flatMap { $0 }.sorted() == all)
    }

    @Test(arguments: ArrivalPattern.allCases)
    func `Steps, lines and bursts have their rates`(pattern: ArrivalPattern) throws {
        let step = try Self.times("step 1000..3000 by 1000 every 10s", pattern, seconds: 40)
        for (second, rate) in [(0.0, 1_000), (10, 2_000), (20, 3_000), (30, 3_000)] {
            let found = Self.count(step, in: second..<second + 10)
            #expect(abs(found - rate * 10) < 800, "\(second): \(found)")
        }
        let line = try Self.times("line 0..2000 over 20s", pattern, seconds: 30)
        for (range, expected) in [(0.0..<10.0, 5_000), (10..<20, 15_000), (20..<30, 20_000)] {
            #expect(abs(Self.count(line, in: range) - expected) < 600, "\(range)")
        }
        let burst = try Self.times("burst 2000 for 2s every 10s over 100", pattern, seconds: 20)
        for (range, expected) in [(0.0..<8.0, 800), (8..<10, 4_000), (10..<18, 800), (18..<20, 4_000)] {
            #expect(abs(Self.count(burst, in: range) - expected) < 270, "\(range)")
        }
    }

    @Test func `Down to nothing, and never again`() throws {
        let times = try Self.times("line 100..0 over 10s", .uniform, seconds: 1e6)
        #expect((499...501).contains(times.count))
        #expect(times.last.map { $0 <= 10 } == true)
    }

    @Test func `A schedule knows its averages and its end`() throws {
        let step = try RateSchedule(parsing: "step 10..30 by 10 every 2s")
        #expect(step.hasEnd && step.seconds == 6)
        #expect(step.average(from: 0, to: 6) == 20 && step.average(from: 1, to: 3) == 15)
        #expect(step.average(from: 0, to: 8) == 22.5)
        #expect(step.warmedUp(for: 4).average(from: 0, to: 4) == 10)
        let line = try RateSchedule(parsing: "line 0..100 over 10s")
        #expect(line.average(from: 0, to: 10) == 50 && line.average(from: 0, to: 5) == 25)
        #expect(try !RateSchedule(parsing: "5000").hasEnd)
    }

    @Test(arguments: [
        "", "0", "x", "-5", "1000001", "1.5", "step 1..2", "step 1..2 by 0 every 1s", "step 1-2 by 1 every 1s",
        "step 1..1000000 by 1 every 1s", "line 0..0 over 1s", "line 1..2 over 0s", "line 1..2 over 90000s",
        "burst 5 for 2s every 2s over 1", "burst 5 for 2s every 3s", "line 1..2 over 99999999999999999999s",
    ])
    func `What is no schedule is refused`(text: String) {
        #expect(throws: UsageError.self) { try RateSchedule(parsing: text) }
    }

    @Test func `As many steps as there may be, and one more`() throws {
        #expect(try RateSchedule(parsing: "step 1..10000 by 1 every 1s").segments.count == RateSchedule.segmentsMax)
        #expect(throws: UsageError.self) { try RateSchedule(parsing: "step 1..10001 by 1 every 1s") }
        #expect(throws: Never.self) { try RateSchedule(parsing: "1000000") }
    }

    @Test func `Pending steps come out in the order of their times`() {
        var steps = PendingSteps()
        var random = SeededGenerator(seed: 11)
        let times = (0..<500).map { _ in Int64(random.below(100)) }
        for time in times {
            steps.insert(PendingSteps.Step(at: .init(nanoseconds: time), place: nil, journey: 0))
        }
        var found: [Int64] = []
        while let step = steps.first {
            found.append(step.at.nanoseconds)
            steps.removeFirst()
        }
        #expect(found == times.sorted())
    }
}
