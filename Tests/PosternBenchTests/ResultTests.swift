import Base
import Glibc
import JSON
import Testing

@testable import PosternBench

/// An example result, for the tests of what is made of it.
func exampleResult() -> RunResult {
    var record = OperationRecord()
    for value in 1...1_000 {
        record.response.record(UInt64(value) * 1_000)
        record.service.record(UInt64(value) * 500)
        record.scheduleLag.record(UInt64(value) * 500)
    }
    record.inTimeCount = 1_000
    for _ in 0..<24 { record.failures["USER_NOT_FOUND", default: Histogram()].record(2_000) }
    var result = RunResult()
    result.configuration = [.init("mix", "get=1")]
    result.host = [.init("processors", 2)]
    result.serverSoftware = "posternd 1.0"
    result.hashes = ("production", "password hashes: production")
    result.seconds = 2
    result.operations = [RunResult.Operation(name: "get", record: record)]
    result.isOpenLoop = true
    result.target = 520
    result.generatorCPUMicroseconds = 500_000
    result.machineCPUMicroseconds = 902_048
    result.server = RunResult.ServerFigures(
        cpuMicroseconds: 2_048, residentByteCount: 4_096, anonymousByteCount: 2_048)
    var slice = RunResult.Slice()
    slice.sentCount = 512
    slice.inFlight = 3
    slice.target = 520
    slice.serverCPUShare = 0.5
    slice.machineCPUShare = 0.75
    slice.operations = ["get": SliceRecord(response: record.response, errors: ["USER_NOT_FOUND": 12])]
    result.series = [slice, slice]
    result.verdicts = [Objective.Verdict(objective: "p99<1ms", measured: "0.990 ms", holds: true)]
    return result
}

@Suite struct ResultTests {
    @Test func `The JSON holds configuration, figures and errors`() throws {
        let json = try JSONValue(parsing: exampleResult().encoded)
        #expect(json["configuration"]?["mix"]?.string == "get=1")
        let get = try #require(json["operations"]?.array?.first)
        #expect(get["requests_per_second"]?.double == 500)
        #expect(get["errors"]?["USER_NOT_FOUND"]?.integer == 24)
        #expect(get["latency_microseconds"]?["p50"]?.double.map { (500...500.6).contains($0) } == true)
        #expect(get["service_microseconds"]?["p50"]?.double.map { (250...250.3).contains($0) } == true)
        #expect(json["server"]?["cpu_microseconds_per_request"]?.double == 2)
        #expect(json["generator_cpu_share"]?.double == 0.25)
        #expect(json["other_cpu_share"]?.double == 0.2)
        #expect(json["hashes"] == "production")
    }

    @Test func `What is written is read again`() throws {
        var result = exampleResult()
        for _ in 0..<10 { result.ownLag.record(2_000_000) }
        #expect(result.isGeneratorLimited)
        let read = try ResultReader(path: "r").result(result.encoded)
        #expect(read.encoded == result.encoded)
    }

    @Test func `A file that is no result is refused, however it is broken`() throws {
        let text = String(decoding: exampleResult().encoded, as: UTF8.self)
        let reader = ResultReader(path: "r")
        #expect(throws: BenchError.self) { try reader.result([UInt8](text.dropLast(10).utf8)) }
        for (from, to) in [
            ("\"version\": 1", "\"version\": 2"), ("\"seconds\": 2.0", "\"seconds\": \"x\""),
            ("\"seconds\": 2.0", "\"seconds\": 1e300"), ("\"hdr\": \"HIST", "\"hdr\": \"HISX"),
            ("\"hdr\": \"H", "\"hdr\": \"A"), ("\"sent\": 512", "\"sent\": -1"),
            ("\"USER_NOT_FOUND\": 12", "\"USER_NOT_FOUND\": 9223372036854775807"),
            ("\"cpu_share\": ", "\"cpu_share\": -"), ("\"max\": ", "\"max\": -"),
            ("\"requests_per_second\": 500", "\"requests_per_second\": 1e14"),
        ] where text.contains(from) {
            #expect(throws: BenchError.self, "\(to)") {
                try reader.result([UInt8](text.replacing(from, with: to).utf8))
            }
        }
    }

    @Test(arguments: [(0, false), (1, false), (2, false), (3, true), (100, true)])
    func `Failures above the share that is allowed fail the run`(percent: Int, passes: Bool) {
        // 24 of 1,024 requests failed.
        if passes {
            #expect(throws: Never.self) { try exampleResult().check(failuresMaxPercent: percent) }
        } else {
            #expect(throws: BenchError.self) { try exampleResult().check(failuresMaxPercent: percent) }
        }
        var failing = exampleResult()
        failing.operations[0].record.response = Histogram()
        #expect(throws: BenchError.self) { try failing.check(failuresMaxPercent: 100) }
        var clean = exampleResult()
        clean.operations[0].record.failures = [:]
        #expect(throws: Never.self) { try clean.check(failuresMaxPercent: percent) }
    }

    @Test func `Each way to end badly has its exit status`() {
        func status(_ change: (inout RunResult) -> Void) -> Int32? {
            var result = exampleResult()
            change(&result)
            do { try result.check(failuresMaxPercent: 100) } catch { return error.kind.rawValue }
            return nil
        }
        #expect(status { _ in } == nil)
        #expect(status { $0.isInterrupted = true } == 130)
        #expect(status { $0.connectionsLost = 1 } == 3)
        #expect(status { $0.notSent = ["SERVER_TOO_FAR_BEHIND": 1] } == 3)
        #expect(status { $0.notSent = ["SKIPPED": 1] } == nil)
        #expect(status { $0.failure = "epoll" } == 3)
        #expect(status { $0.verdicts[0].holds = false } == 99)
    }

    @Test func `The table says the same`() {
        let table = RunTable(result: exampleResult()).text
        #expect(table.contains("get: USER_NOT_FOUND 24"))
        #expect(table.contains("server: 2.00 µs of CPU a request"))
        #expect(table.contains("password hashes: production\n"))
        #expect(table.contains("holds: p99<1ms, measured 0.990 ms"))
        #expect(table.contains("WARNING: 500 a second were achieved of 520 asked for"))
    }

    @Test func `CPU time is divided by the answers of the same time`() {
        var result = exampleResult()
        // These came after the end, from a queue.
        for _ in 0..<1_000 { result.operations[0].record.response.record(5_000) }
        #expect(result.cpuMicrosecondsPerRequest == 2)
        #expect(result.loadMicrosecondsPerRequest == 500_000.0 / 1_024)
    }

    @Test func `The achieved share is of what was due, and of the journeys of a scenario`() throws {
        var result = exampleResult()
        // Fewer requests were due than the rate of 520 says on average, and all went well.
        for _ in 0..<1_000 { result.ownLag.record(1_000) }
        #expect(result.achievedShare == 1)
        #expect(!result.warnings.contains { $0.contains("were achieved of") })
        result.notSent = ["SKIPPED": 1_000]
        #expect(result.achievedShare == 0.5)
        result.journeysBegun = 400
        #expect(result.achievedShare == 0.2)
        #expect(result.warnings.contains("400 of 2000 journeys that were due began in time"))
        #expect(RunTable(result: result).text.contains("500/s in 400 of 2000 journeys that were due, "))
        #expect(try ResultReader(path: "r").result(result.encoded).journeysBegun == 400)
    }

    @Test func `One busy thread among others is told`() throws {
        var result = exampleResult()
        result.generatorThreads = 4
        #expect(!result.isGeneratorLimited)
        result.busiestThreadShare = 0.95
        #expect(result.isGeneratorLimited && result.warnings.contains { $0.contains("the busiest 0.95") })
        #expect(try ResultReader(path: "r").result(result.encoded).isGeneratorLimited)
    }

    @Test func `A log of histograms has a line for each slice and each kind of failure`() throws {
        var result = exampleResult()
        result.operations[0].record.failures = ["A, B\n": result.operations[0].record.response]
        let lines = HistogramLog(result: result).text.split(separator: "\n")
        #expect(lines.count == 5 + 3)
        #expect(lines[1] == "#[Histogram log format version 1.3]")
        #expect(lines[5].hasPrefix("Tag=get,0.000,1.000,1.000,HISTFAAA"))
        #expect(lines[6].hasPrefix("Tag=get,1.000,1.000,1.000,HISTFAAA"))
        #expect(lines[7].hasPrefix("Tag=get:A__B_,0.000,2.000,1.000,HISTFAAA"))
    }

    @Test func `The series as CSV`() {
        var result = exampleResult()
        result.series[1].operations = ["a \"b\",c": SliceRecord()]
        let lines = SeriesCSV(result: result).text.split(separator: "\r\n")
        #expect(lines[0].hasPrefix("second,operation,ok,errors,p50_us"))
        #expect(lines[1].hasPrefix("1,get,1000,12,500"))
        #expect(lines[2] == "2,\"a \"\"b\"\",c\",0,0,,,,,,512,3,520.0,0.500")
        // A second in which nothing was answered is there, too.
        #expect(lines.count == 4 && lines[3] == "2,get,0,0,,,,,,512,3,520.0,0.500")
    }

    @Test func `Decimals are rounded and keep their zeros`() {
        #expect(decimal(1.005, places: 0) == "1")
        #expect(decimal(2.046, places: 2) == "2.05")
        #expect(decimal(0.96, places: 1) == "1.0")
        #expect(decimal(-0.26, places: 1) == "-0.3" && decimal(-0.01, places: 1) == "0.0")
        #expect(decimal(.infinity, places: 1) == "inf")
    }

    @Test func `A full disk fails the writing, with what is missing`() {
        #expect(throws: BenchError.self) { try TextFile.write([1, 2, 3], to: "/dev/full/x") }
        #expect(throws: BenchError.self) { try TextFile.write([1], to: "/nowhere/result.json") }
    }
}
