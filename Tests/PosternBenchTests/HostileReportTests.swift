import Base
import Testing

@testable import PosternBench

@Suite struct HostileReportTests {
    private func report(_ milliseconds: [UInt64], errors: [String: Int] = [:]) -> HostileReport {
        var outcome = Outcome(errors: errors)
        for value in milliseconds { outcome.latency.record(value * 1_000_000) }
        return HostileReport(canary: [("get", outcome)], attacks: [("flood", [("OK", 3), ("TENANT_BUSY", 1)])])
    }

    @Test func `A canary that is served in time passes`() throws {
        try report([UInt64](repeating: 249, count: 100)).check(slowestMilliseconds: 250)
    }

    @Test func `One failed request fails the run, and so does a slow hundredth`() {
        #expect(throws: BenchError.self) {
            try report([1, 1], errors: ["UNANSWERED": 1]).check(slowestMilliseconds: 250)
        }
        let slow = [UInt64](repeating: 1, count: 98) + [300, 300]
        #expect(throws: BenchError.self) { try report(slow).check(slowestMilliseconds: 250) }
    }

    @Test func `A canary without a request proves nothing`() {
        #expect(throws: BenchError.self) { try report([]).check(slowestMilliseconds: 250) }
    }

    @Test func `Attacks of which none reached the server prove nothing`() throws {
        var outcome = Outcome()
        outcome.latency.record(1_000_000)
        let closed: [(answer: String, count: Int)] = [("connection refused or closed", 9), ("not connected", 2)]
        let connected: [(answer: String, count: Int)] = [("connected", 1)]
        let alone = HostileReport(canary: [("get", outcome)], attacks: [("flood", closed)])
        #expect { try alone.check(slowestMilliseconds: 250) } throws: { ($0 as? BenchError)?.kind == .failed }
        let beside = HostileReport(canary: [("get", outcome)], attacks: [("flood", closed), ("slow", connected)])
        try beside.check(slowestMilliseconds: 250)
    }

    @Test func `Each part of a choice of attacks has to choose one`() throws {
        let names = ["app key flood", "long passwords", "tenant admin flood"]
        #expect(try HostileCommand.chosen("", among: names) == Set(names))
        #expect(try HostileCommand.chosen("flood,long", among: names) == Set(names))
        #expect(try HostileCommand.chosen("long", among: names) == ["long passwords"])
        for wrong in ["floods", "flood,passwrods", ",", "long,"] {
            #expect(throws: UsageError.self) { try HostileCommand.chosen(wrong, among: names) }
        }
    }

    @Test func `The report shows the canary by operation and the answers to each attack`() {
        let table = report([10], errors: ["UNANSWERED": 2]).printed(as: .table)
        #expect(table.contains("get: UNANSWERED 2"))
        #expect(table.contains("flood: OK 3, TENANT_BUSY 1") && table.contains("password hashes: production"))
    }
}
