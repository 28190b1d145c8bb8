import Base
import JSON
import Testing

@testable import PosternBench

@Suite struct TraceTests {
    private static func trace(_ text: String) throws -> Trace {
        try Trace(reading: [UInt8](text.utf8), named: "trace")
    }

    private static let three = """
        {"at_ms": 1500.5, "do": "verify"}
        {"at_ms": 500, "do": "get", "user": 17}

        {"at_ms": 501, "do": "sign-in"}
        """

    @Test func `Requests are in the order of their times, from the first on`() throws {
        let trace = try Self.trace(Self.three)
        #expect(
            trace.events == [
                Trace.Event(at: 0, operation: .get, user: 17), Trace.Event(at: 1_000_000, operation: .signIn),
                Trace.Event(at: 1_000_500_000, operation: .verify),
            ])
        #expect(trace.schedule.segments.map(\.from) == [2, 1] && trace.schedule.hasEnd)
        #expect(Mix(trace).operations == [.get, .verify, .signIn])
    }

    @Test func `A trace is replayed faster, and by several threads`() throws {
        let trace = try Self.trace(Self.three)
        #expect(trace.atSpeed(2).events.map(\.at) == [0, 500_000, 500_250_000])
        #expect(trace.share(1, of: 2).events.map(\.operation) == [.signIn])
        #expect(trace.share(0, of: 2).events.map(\.operation) == [.get, .verify])
        var arrivals = Arrivals(recorded: [3, 4])
        #expect(arrivals.next() == 3 && arrivals.next() == 4 && arrivals.next() == nil)
    }

    @Test func `Lines of an access log are requests that began before their line, and other methods are counted`()
        throws
    {
        let log = """
            {"time_micros":1000500,"message":"call","method":"postern.v1.Users/Get","duration_micros":500,"one_in":9}
            {"time_micros":1000200,"message":"call","method":"postern.v1.Tokens/Refresh","duration_micros":300}
            {"time_micros":1000300,"message":"call","method":"postern.v1.Users/Delete","duration_micros":3}
            {"time_micros":-5,"message":"call","method":"postern.v1.Users/Get","duration_micros":3}
            """
        let trace = try Self.trace(log)
        #expect(trace.events.map(\.operation) == [.refresh, .get] && trace.events.map(\.at) == [0, 100_000])
        #expect(trace.left == ["postern.v1.Users/Delete": 1, "postern.v1.Users/Get": 1] && trace.oneIn == 9)
    }

    @Test(arguments: [
        "", "\n\n", "get", "[1]", #"{"at_ms":1}"#, #"{"do":"get"}"#, #"{"at_ms":-1,"do":"get"}"#,
        #"{"at_ms":86400001,"do":"get"}"#, #"{"at_ms":1e400,"do":"get"}"#, #"{"at_ms":0,"do":"idp"}"#,
        #"{"at_ms":0,"do":"sign-out"}"#, #"{"at_ms":0,"do":"get","user":-1}"#, #"{"at_ms":0,"do":"get","user":1.5}"#,
        #"{"at_ms":0,"do":"get","usr":1}"#, "{\"at_ms\":0,\"do\":\"get\"}\n{\"at_ms\"",
    ])
    func `What is no trace is refused`(text: String) {
        #expect(throws: BenchError.self) { try Self.trace(text) }
    }

    @Test func `The least and the greatest times are taken, and a line above the limit is not`() throws {
        let day = #"{"at_ms":0,"do":"get"}"# + "\n" + #"{"at_ms":86400000,"do":"get"}"#
        #expect(try Self.trace(day).seconds == 86_400)
        #expect(try Self.trace(day).schedule.segments.count <= RateSchedule.segmentsMax)
        let line = #"{"at_ms":0,"do":"get"}"#
        let spaces = Trace.lineByteCountMax - line.utf8.count
        #expect(try Self.trace(line + String(repeating: " ", count: spaces)).events.count == 1)
        #expect(throws: BenchError.self) { try Self.trace(line + String(repeating: " ", count: spaces + 1)) }
    }

    @Test func `A trace is replayed against a server, each request once`() async throws {
        try await BenchServer.with { bench in
            try bench.seed()
            let lines = (0..<60).map { number in
                let operation = ["get", "verify", "refresh"][number % 3]
                return #"{"at_ms":\#(number * 10),"do":"\#(operation)","user":\#(number)}"#
            }
            try TextFile.write([UInt8](lines.joined(separator: "\n").utf8), to: bench.path("trace"))
            let words = [bench.path("trace"), "--connections", "2", "--max-outstanding", "8"]
            for more in [[], ["--transport", "grpc", "--speed", "2", "--threads", "2"]] {
                let result = try bench.load("replay", words + more)
                #expect(result.operations.map(\.record.okCount) == [20, 20, 20], "\(more)")
                #expect(result.configuration.first { $0.name == "arrivals" }?.value == "recorded")
                #expect(result.errorCount == 0 && result.notSent.isEmpty)
            }
        }
    }
}
