import Testing

@testable import PosternBench

@Suite struct ObjectiveTests {
    private static func verdict(_ text: String, isOpenLoop: Bool = true) throws -> Objective.Verdict {
        try Objective.parse(text, operations: ["get", "sign-in"], isOpenLoop: isOpenLoop)[0].verdict(
            on: exampleResult())
    }

    @Test(arguments: [
        ("get.p99<1ms", true), ("get.p99<980us", false), ("p50<501µs", true), ("p50<499us", false),
        ("get.response.p99.9<1ms", true), ("p99.9<998us", false), ("get.service.p50<251us", true),
        ("lag.max<499us", false), ("mean<501us", true), ("mean<500000ns", false), ("max<2s", true),
        ("error_rate<3%", true), ("error_rate<2.3%", false), ("get.error_rate<3%", true), ("achieved_rate>96%", true),
        ("achieved_rate>97%", false), ("rate>499", true), ("get.rate>500/s", false), ("p50>499us", true),
        ("sign-in.p99<1s", false), ("signin.error_rate<1%", true),
    ])
    func `An objective holds or does not`(text: String, holds: Bool) throws {
        #expect(try Self.verdict(text).holds == holds, "\(text)")
    }

    @Test(arguments: [
        "p99", "p99<", "p99<5", "p99<5%", "p99<-1ms", "p99<infms", "p0<1ms", "p101<1ms", "px<1ms", "sign-up.p99<1ms",
        "get.foo.p99<1ms", "error_rate<5", "error_rate<5ms", "achieved<1%", "", "get.<1ms", ".p99<1ms", "p99=1ms",
        "p99<1ms,", "get.p99<nanms",
    ])
    func `An unknown metric or a bound of another kind is a usage error`(text: String) {
        #expect(throws: UsageError.self) { try Self.verdict(text) }
    }

    @Test func `What only an open loop has is refused in a closed one`() throws {
        for text in ["achieved_rate>99%", "service.p99<1ms", "lag.p99<1ms"] {
            #expect(throws: UsageError.self) { try Self.verdict(text, isOpenLoop: false) }
        }
        #expect(try Self.verdict("p99<1ms", isOpenLoop: false).holds)
    }

    @Test func `Several objectives, and as many as there may be`() throws {
        func parse(_ count: Int) throws -> Int {
            let text = Array(repeating: "p99<1ms", count: count).joined(separator: ",")
            return try Objective.parse(text, operations: ["get"], isOpenLoop: true).count
        }
        #expect(try parse(Objective.countMax) == Objective.countMax)
        #expect(throws: UsageError.self) { try parse(Objective.countMax + 1) }
    }
}
