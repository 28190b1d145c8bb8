import Base
import JSON
import Testing

@testable import PosternBench

@Suite struct ReportTests {
    private var report: Report {
        var outcome = Outcome()
        for value in 1...1_000 { outcome.latency.record(UInt64(value) * 1_000) }
        outcome.errors["USER_NOT_FOUND"] = 24
        let before = ServerProcess.Usage(cpuMicroseconds: 1_000, residentByteCount: 0, anonymousByteCount: 0)
        let after = ServerProcess.Usage(cpuMicroseconds: 3_048, residentByteCount: 4_096, anonymousByteCount: 2_048)
        return Report(
            configuration: [("mix", "get=1")], hashes: .production, seconds: 2, operations: [(.get, outcome)],
            connectionsLost: 0,
            generatorCPUMicroseconds: 500_000, machineCPUMicroseconds: 902_048, server: (before, after))
    }

    @Test func `The JSON holds configuration, figures and errors`() throws {
        let json = try JSONValue(parsing: [UInt8](report.printed(as: .json).utf8))
        #expect(json["configuration"]?["mix"]?.string == "get=1")
        let get = try #require(json["operations"]?.array?.first)
        #expect(get["requests_per_second"]?.double == 500)
        #expect(get["errors"]?["USER_NOT_FOUND"]?.integer == 24)
        let median = try #require(get["latency_microseconds"]?["p50"]?.double)
        #expect((500...504).contains(median))
        #expect(json["server"]?["cpu_microseconds_per_request"]?.double == 2)
        #expect(json["generator_cpu_share"]?.double == 0.25)
        #expect(json["other_cpu_share"]?.double == 0.2)
    }

    @Test(arguments: [(0, false), (1, false), (2, false), (3, true), (100, true)])
    func `Failures above the share that is allowed fail the run`(percent: Int, passes: Bool) {
        // 24 of 1,024.
        if passes {
            #expect(throws: Never.self) { try report.check(failuresMaxPercent: percent) }
        } else {
            #expect(throws: BenchError.self) { try report.check(failuresMaxPercent: percent) }
        }
        var failing = report
        failing.operations[0].outcome.latency = Histogram()
        #expect(throws: BenchError.self) { try failing.check(failuresMaxPercent: 100) }
        var clean = report
        clean.operations[0].outcome.errors = [:]
        #expect(throws: Never.self) { try clean.check(failuresMaxPercent: percent) }
    }

    @Test func `Every result says how dear its password hashes are`() throws {
        #expect(report.printed(as: .table).contains("password hashes: production\n"))
        #expect(try JSONValue(parsing: [UInt8](report.printed(as: .json).utf8))["hashes"] == "production")
    }

    @Test func `The table says the same`() {
        let table = report.printed(as: .table)
        #expect(table.contains("get: USER_NOT_FOUND 24"))
        #expect(table.contains("server: 2.00 µs of CPU a request"))
    }

    @Test func `Decimals are rounded and keep their zeros`() {
        #expect(decimal(1.005, places: 0) == "1")
        #expect(decimal(2.046, places: 2) == "2.05")
        #expect(decimal(0.96, places: 1) == "1.0")
    }
}
