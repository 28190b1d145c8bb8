import Base
import JSON
import Testing

@testable import PosternBench

@Suite struct ReportTests {
    private static let hostile = "</td><script>alert(1)</script>\"'&\u{1}\u{85}"

    /// A result in which every text from a file or a server tries to break out of its place.
    private static var result: RunResult {
        var result = exampleResult()
        result.configuration = [
            .init(Text("name" + hostile), .string(Text(hostile))), .init("mix", .string(Text(hostile))),
        ]
        result.serverSoftware = hostile
        result.hashes = (hostile, "")
        result.failure = hostile
        result.operations[0].name = hostile
        result.operations[0].record.failures = [hostile: result.operations[0].record.response]
        result.notSent = [hostile: 1]
        result.verdicts = [Objective.Verdict(objective: hostile, measured: hostile, holds: false)]
        return result
    }

    @Test func `No text leaves its place, and nothing is loaded`() {
        let text = HTMLReport(result: Self.result, generatorCount: 1).text
        #expect(!text.contains("<script") && !text.contains("alert(1)</"))
        #expect(text.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;"))
        #expect(!text.contains("http:") && !text.contains("https:") && !text.contains("src="))
        #expect(text.unicodeScalars.allSatisfy { $0 == "\n" || $0.value >= 0x20 })
    }

    @Test func `The report shows figures, verdicts and six plots at most`() {
        let text = HTMLReport(result: exampleResult(), generatorCount: 2).text
        #expect(text.contains("<b>500/s</b>") && text.contains("holds: p99&lt;1ms, measured 0.990 ms"))
        #expect(text.split(separator: "<svg", omittingEmptySubsequences: false).count - 1 == 6)
        #expect(text.contains("<td>load generators</td><td>2</td>"))
        #expect(HTMLReport(result: RunResult(), generatorCount: 1).text.contains("</html>"))
    }

    @Test func `Each rate that was tried has a row, with what the search found of it`() throws {
        func step(_ rate: Double, serverCPUs: Double) -> RunResult {
            var result = exampleResult()
            result.target = rate
            for index in result.series.indices {
                result.series[index].target = rate
                result.series[index].serverCPUShare = serverCPUs
                result.series[index].machineCPUShare = serverCPUs + 1
            }
            return result
        }
        var result = try RunResult.inTurn([step(400, serverCPUs: 0.25), step(520, serverCPUs: 0.75)])
        let plain = HTMLReport(result: result, generatorCount: 1).text
        #expect(plain.contains("Rate by rate") && plain.contains("<td>0.25</td><td>1.25</td><td></td>"))
        result.configuration += [
            .init("objectives", "p99<20ms"), .init("saturation_per_second", 400), .init("failed_per_second", 520),
        ]
        let search = HTMLReport(result: result, generatorCount: 1).text
        #expect(
            search.contains("<td>0.25</td><td>1.25</td><td>holds</td>")
                && search.contains("<td>0.75</td><td>1.75</td><td>fails</td>"))
        #expect(search.contains("<b>0.25</b>CPUs of the server at it") && search.contains("of all rates together"))
        // The bound is a line in the plot; the total of all rates is not a figure that needs a warning.
        #expect(search.contains("</i>p99&lt;20ms</span>") && !search.contains("were achieved of"))
        #expect(!HTMLReport(result: exampleResult(), generatorCount: 1).text.contains("Rate by rate"))
    }

    @Test func `Late answers behind a schedule's end are in no plot, also between two steps`() {
        var result = exampleResult()
        var late = result.series[0]
        late.target = nil
        result.series.insert(late, at: 1)
        let text = HTMLReport(result: result, generatorCount: 1).text
        // Response times against rates: p50 and p99 of each of the two slices that have a rate.
        #expect(text.split(separator: "<circle", omittingEmptySubsequences: false).count - 1 == 4)
    }

    @Test func `Where the server is full is said in a sentence`() {
        func sentence(_ slices: [(asked: Double, answered: Int)]) -> String? {
            var result = RunResult()
            for (asked, answered) in slices {
                var slice = RunResult.Slice()
                slice.target = asked
                var response = Histogram()
                for _ in 0..<answered { response.record(1_000) }
                slice.operations = ["get": SliceRecord(response: response)]
                result.series.append(slice)
            }
            return Saturation(result)?.sentence
        }
        #expect(sentence([(100, 100), (100, 99)]) == nil)
        #expect(
            sentence([(100, 100), (200, 198), (300, 220), (400, 210)])
                == "the server kept up with 200 a second, and not with 300")
        #expect(sentence([(100, 100), (200, 199)]) == "the server kept up with every rate, up to 200 a second")
        #expect(sentence([(100, 50), (200, 60)]) == "the server did not even keep up with 100 a second")
    }

    @Test func `Plots take any numbers`() {
        for points in [
            [], [(0, 0)], [(1, .nan)], [(.infinity, 1)], [(-5, -5), (5, 5)], [(1e-9, 1e15), (1e15, 1e-9)],
        ] as [[(x: Double, y: Double)]] {
            for scale in [Plot.Scale.linear, .logarithmic] {
                for style in [Plot.Style.line, .points] {
                    let series = Plot.Series(name: "a", style: style, points: points)
                    let svg = Plot(
                        title: "t", xLabel: "x", yLabel: "y", xScale: scale, yScale: scale, series: [series]
                    ).svg
                    #expect(!svg.contains("nan") && !svg.contains("inf"))
                }
            }
        }
    }

    @Test func `Results of several load tools add up, second by second`() throws {
        var late = exampleResult()
        late.startedAt += 1_100_000
        let merged = try RunResult.merged([late, exampleResult()])
        #expect(merged.operations[0].record.okCount == 2_000 && merged.errorCount == 48)
        #expect(merged.target == 1_040 && merged.achieved == 1_000)
        #expect(merged.series.map(\.sentCount) == [512, 1_024, 512])
        #expect(merged.startedAt == exampleResult().startedAt)
        // Both ran on the server's machine: neither is another program's load.
        var one = exampleResult()
        one.machineCPUMicroseconds += one.generatorCPUMicroseconds
        let both = try RunResult.merged([one, one])
        #expect(both.otherCPUShare == 0.2 && both.processorCount == one.processorCount)
        late.startedAt += 86_400_000_000
        #expect(throws: BenchError.self) { try RunResult.merged([late, exampleResult()]) }
        late.sliceSeconds = 2
        #expect(throws: BenchError.self) { try RunResult.merged([late, exampleResult()]) }
        #expect(throws: BenchError.self) { try RunResult.merged([]) }
    }

    @Test func `Steps in turn are one result with a series of all of them`() throws {
        var second = exampleResult()
        second.target = 1_000
        let all = try RunResult.inTurn([exampleResult(), second])
        #expect(all.series.count == 4 && all.seconds == 4 && all.target == 760)
        #expect(all.server?.cpuMicroseconds == 4_096 && all.operations[0].record.okCount == 2_000)
        #expect(throws: BenchError.self) { try RunResult.inTurn([]) }
    }
}

@Suite struct RateSearchTests {
    private static func search(from: Int, precision: Int = 5, limit: Int) -> (best: Int?, tried: Int) {
        var search = RateSearch(from: from, precisionPercent: precision)
        var tried = 0
        while let rate = search.next, tried < 100 {
            search.note(rate <= limit)
            tried += 1
        }
        return (search.best, tried)
    }

    @Test(arguments: [1, 2, 77, 100, 101, 4_321, 999_999, 1_000_000, 5_000_000])
    func `The highest rate that holds is found to the precision`(limit: Int) throws {
        for from in [1, 100, 1_000_000] {
            let (best, tried) = Self.search(from: from, limit: limit)
            let found = try #require(best)
            #expect(found <= limit && Double(found) >= Double(min(limit, 1_000_000)) * 0.94 - 1, "\(found) of \(limit)")
            #expect(tried <= 30)
        }
    }

    @Test func `When nothing holds the search ends`() {
        #expect(Self.search(from: 100, limit: 0).best == nil)
        #expect(Self.search(from: 1, limit: 0).tried == 1)
    }

    @Test func `A report of saturate says where the server saturates`() {
        var result = exampleResult()
        result.configuration += [
            .init("objectives", "p99<20ms"), .init("saturation_per_second", 2_000), .init("failed_per_second", 2_125),
        ]
        let text = HTMLReport(result: result, generatorCount: 1).text
        #expect(
            text.contains(
                "the server saturates above 2000 a second: p99&lt;20ms holds up to there, and no more at 2125"))
        #expect(text.contains("<b>2000/s</b>highest rate that holds") && !text.contains("kept up with"))
        result.configuration.append(.init("failed_because_of", "machine"))
        let shared = HTMLReport(result: result, generatorCount: 1).text
        #expect(shared.contains("saturates above 2000 a second, with the load tool beside it"))
        result.configuration.removeLast()
        result.configuration.append(.init("failed_because_of", "load_tool"))
        let unknown = HTMLReport(result: result, generatorCount: 1).text
        #expect(unknown.contains("p99&lt;20ms holds up to 2000 a second; above, the load tool was the bottleneck"))
        #expect(!unknown.contains("the server saturates above"))
        result.configuration.removeAll { $0.name == "saturation_per_second" }
        result.configuration.append(.init("saturation_per_second", .null))
        let none = HTMLReport(result: result, generatorCount: 1).text
        #expect(none.contains("does not even hold at 2125 a second") && !none.contains("highest rate"))
    }
}
