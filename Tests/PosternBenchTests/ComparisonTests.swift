import Base
import JSON
import Testing

@testable import PosternBench

@Suite struct ComparisonTests {
    /// A run of ten seconds with a hundred requests each, whose figures move as those of a busy machine do: by `noise`
    /// from second to second, and by half of it from run to run.
    private static func result(
        cpu: Double = 10, latency: Double = 400, noise: Double = 0.03, _ random: inout SeededGenerator,
        distance: Int64 = 100
    ) -> RunResult {
        func drawn(_ deviation: Double) -> Double {
            // The sum of twelve random numbers is close to a normal distribution with deviation 1.
            // A loop, because a debug build would call a closure a hundred million times.
            var sum = -6.0
            var left = 12
            while left > 0 {
                sum += random.unit()
                left -= 1
            }
            return max(0.1, 1 + deviation * sum)
        }
        var result = RunResult()
        result.host = [.init("core_distance_nanoseconds", .integer(distance))]
        result.configuration = [.init("mix", "get=1"), .init("seed", 1)]
        result.isOpenLoop = true
        result.target = 100
        result.seconds = 10
        var record = OperationRecord()
        var microseconds = 0.0
        let ofRun = drawn(noise / 2)
        for _ in 0..<10 {
            var slice = RunResult.Slice()
            let (second, secondCPU) = (drawn(noise), drawn(noise))
            var response = Histogram()
            for _ in 0..<100 { response.record(UInt64(latency * 1_000 * ofRun * second * drawn(0.1))) }
            slice.operations["get"] = SliceRecord(response: response)
            slice.serverCPUShare = cpu * 100 * ofRun * secondCPU / 1e6
            microseconds += (slice.serverCPUShare ?? 0) * 1e6
            record.response.merge(response)
            result.series.append(slice)
        }
        record.inTimeCount = 1_000
        result.operations = [RunResult.Operation(name: "get", record: record)]
        result.server = RunResult.ServerFigures(
            cpuMicroseconds: Int(microseconds), residentByteCount: 0, anonymousByteCount: 0)
        return result
    }

    private static func regressions(_ tries: Int, cpuAfter: Double, runs: Int = 1, seed: UInt64) throws -> Int {
        var random = SeededGenerator(seed: seed)
        return try (0..<tries).reduce(0) { count, _ in
            let before = (0..<runs).map { _ in result(&random) }
            let after = (0..<runs).map { _ in result(cpu: cpuAfter, &random) }
            return count + (try Comparison(before, after, threshold: 0.05).regressions.isEmpty ? 0 : 1)
        }
    }

    @Test(arguments: [(1, 1), (3, 2), (5, 3)])
    func `Two runs of one server are no regression in nine of ten tries`(shape: (runs: Int, seed: UInt64)) throws {
        let found = try Self.regressions(100, cpuAfter: 10, runs: shape.runs, seed: shape.seed)
        #expect(found <= 10, "\(found) of 100, seed \(shape.seed)")
    }

    @Test(arguments: [(3, 2), (5, 3)])
    func `Fifteen percent more CPU are a regression when the runs were repeated`(shape: (runs: Int, seed: UInt64))
        throws
    {
        let found = try Self.regressions(100, cpuAfter: 11.5, runs: shape.runs, seed: shape.seed)
        #expect(found >= 90, "\(found) of 100, seed \(shape.seed)")
    }

    @Test func `On a quieter machine one run of each is enough`() throws {
        var random = SeededGenerator(seed: 8)
        for _ in 0..<20 {
            let before = Self.result(noise: 0.005, &random)
            let after = Self.result(cpu: 11.5, noise: 0.005, &random)
            let comparison = try Comparison([before], [after], threshold: 0.05)
            #expect(comparison.regressions.map(\.what) == ["server CPU a request"])
            let back = try Comparison([after], [before], threshold: 0.05)
            #expect(back.regressions.isEmpty && back.rows[0].change == .better)
        }
    }

    /// Other programs slow both runs of a pair down, by up to half. Seven pairs are measured in turn.
    private static func comparison(
        _ random: inout SeededGenerator, cpuAfter: Double, isInTurn: Bool = true, moved: Int = 0
    ) throws -> Comparison {
        var sides: (before: [RunResult], after: [RunResult]) = ([], [])
        for number in 0..<7 {
            let others = 1 + 0.5 * random.unit()
            var before = result(cpu: 10 * others, latency: 400 * others, &random)
            var after = result(
                cpu: cpuAfter * others, latency: 400 * others, &random, distance: number < moved ? 30 : 100)
            // In every second pair, the runs are in the other order.
            let (first, second) = (Int64(number * 20), Int64(number * 20 + 10))
            (before.startedAt, after.startedAt) = number % 2 == 0 ? (first, second) : (second, first)
            if !isInTurn { after.startedAt += 1_000 }
            sides.before.append(before)
            sides.after.append(after)
        }
        return try Comparison(sides.before, sides.after, threshold: 0.05)
    }

    @Test func `Runs in turn are compared pair by pair, however much else the machine does`() throws {
        var random = SeededGenerator(seed: 8)
        var (falseOnes, found, foundByMiddles) = (0, 0, 0)
        for _ in 0..<100 {
            falseOnes += try Self.comparison(&random, cpuAfter: 10).regressions.isEmpty ? 0 : 1
            found += try Self.comparison(&random, cpuAfter: 11.5).regressions.isEmpty ? 0 : 1
            let apart = try Self.comparison(&random, cpuAfter: 11.5, isInTurn: false)
            foundByMiddles += apart.regressions.isEmpty ? 0 : 1
        }
        print("false \(falseOnes), found \(found), by the middles of the sides \(foundByMiddles) of 100, seed 8")
        #expect(falseOnes <= 10 && found >= 95 && foundByMiddles < 50)
    }

    @Test func `Pairs within which the host moved the processors are left out`() throws {
        var random = SeededGenerator(seed: 9)
        #expect(try !Self.comparison(&random, cpuAfter: 13, moved: 4).regressions.isEmpty)
        let few = try Self.comparison(&random, cpuAfter: 13, moved: 5)
        #expect(few.regressions.isEmpty && few.rows.first?.change == .unclear)
    }

    @Test func `When the host moved the processors nothing is said about a change`() throws {
        var random = SeededGenerator(seed: 9)
        let before = Self.result(noise: 0.005, &random)
        let after = Self.result(cpu: 14, noise: 0.005, &random, distance: 430)
        let comparison = try Comparison([before], [after], threshold: 0.05)
        #expect(comparison.regressions.isEmpty && comparison.rows[0].change == .unclear)
        #expect(
            comparison.remarks == [
                "the processors were 100 to 430 ns apart: the host moved them, and figures moved with them"
            ])
    }

    @Test func `Results of different loads are told apart`() throws {
        var random = SeededGenerator(seed: 10)
        let before = Self.result(&random)
        var after = Self.result(&random)
        after.configuration[0] = .init("mix", "get=2")
        after.configuration[1] = .init("seed", 2)
        #expect(try Comparison([before], [after], threshold: 0.05).remarks == ["not the same load: mix differs"])
        after.operations[0].name = "verify"
        #expect(throws: BenchError.self) { try Comparison([before], [after], threshold: 0.05) }
        #expect(throws: BenchError.self) { try Comparison([], [after], threshold: 0.05) }
    }

    @Test func `Failed answers and lost connections are noted`() throws {
        var random = SeededGenerator(seed: 12)
        let before = Self.result(&random)
        var after = before
        after.operations[0].record.failures["USER_NOT_FOUND", default: Histogram()].record(1)
        after.connectionsLost = 1
        let remarks = try Comparison([before], [after], threshold: 0.05).remarks
        #expect(remarks.contains { $0.contains("lost connections") })
        #expect(remarks.contains { $0.hasPrefix("up to 0.10 % of a result's requests failed") })
    }

    @Test func `As Markdown no name leaves its cell`() throws {
        var random = SeededGenerator(seed: 11)
        var result = Self.result(&random)
        result.operations[0].name = "a|b<c"
        for index in result.series.indices {
            result.series[index].operations = ["a|b<c": SliceRecord(response: result.operations[0].record.response)]
        }
        let text = try Comparison([result], [result], threshold: 0.05).printed(asMarkdown: true)
        #expect(text.contains("| a\\|b&lt;c p50 | "))
        #expect(
            text.split(separator: "\n").allSatisfy { $0.replacing("\\|", with: "").filter { $0 == "|" }.count == 7 })
    }

    @Test func `Without a series or figures there is nothing to compare, and nothing traps`() throws {
        var empty = RunResult()
        empty.operations = [RunResult.Operation(name: "get", record: OperationRecord())]
        #expect(try Comparison([empty], [empty], threshold: 0).rows.isEmpty)
    }
}
