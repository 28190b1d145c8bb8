import Base
import Synchronization
import TestSupport
import Testing
import Wire

@testable import PosternBench

@Suite struct OpenLoopTests {
    private static let perSecond = 100

    /// A tenth of a second of `get`s, due every 10 ms, against a stub.
    private func run(
        begunBefore: Duration = .zero, countedAfter: Duration = .zero, _ answer: @escaping StubServer.Answer
    ) throws -> (outcome: Outcome, lag: Lag) {
        let server = try StubServer(connections: 1, answer: answer)
        var population = Population(tenantID: "bench")
        population.userCount = 10
        let workload = Workload(
            mix: try Mix(parsing: "get=1"), population: population, sessions: [], tokensMax: 1, driver: 0, run: 1,
            seed: 1)
        var loop: OpenLoop? = try OpenLoop(
            workload, address: server.address, authorization: "Bearer none", connections: 1, perSecond: Self.perSecond)
        let begin = Instant.now.advanced(by: .zero - begunBefore)
        try loop?.run(
            from: begin, countFrom: begin.advanced(by: countedAfter), until: begin.advanced(by: .milliseconds(100)),
            drain: .seconds(5))
        let found = (loop?.outcomes[Operation.get.rawValue] ?? Outcome(), loop?.lag ?? Lag())
        loop = nil
        server.finish()
        return found
    }

    @Test func `A request counts from when it was due, also when the server stood still`() throws {
        let held = Mutex<[UInt32]>([])
        let (outcome, lag) = try run { streams, output in
            let due = held.withLock { held -> [UInt32] in
                held += streams
                return held.count == 10 ? held : []
            }
            for stream in due { output.appendResponse(stream: stream) { $0.append(1) } }
            return true
        }
        #expect(outcome.okCount == 10 && outcome.errorCount == 0 && lag.unsent.isEmpty)
        // The first was due 90 ms before the last, and was answered behind it.
        #expect(outcome.latency.maximum >= 90_000_000)
    }

    @Test func `Refusals and requests without an answer are errors`() throws {
        let (outcome, _) = try run { streams, output in
            for stream in streams {
                let failure = Failure(.resourceExhausted, "SERVER_OVERLOADED", "later")
                output.appendFailure(stream: stream, failure)
            }
            return true
        }
        #expect(outcome.okCount == 0)
        #expect(outcome.errors == ["SERVER_OVERLOADED": 10])
    }

    @Test func `A lost connection loses what is in flight and what is due after it`() throws {
        let (outcome, lag) = try run { _, _ in false }
        #expect(outcome.errors.keys.sorted() == ["CONNECTION_LOST"])
        #expect(outcome.errorCount + (lag.unsent["CONNECTION_LOST"] ?? 0) == 10)
    }

    private static let answerAtOnce: StubServer.Answer = { streams, output in
        for stream in streams { output.appendResponse(stream: stream) { $0.append(1) } }
        return true
    }

    @Test func `What is due while it warms up is sent and not counted`() throws {
        let answered = Counter()
        let (outcome, lag) = try run(countedAfter: .milliseconds(60)) { streams, output in
            answered.add(UInt64(streams.count))
            return Self.answerAtOnce(streams, &output)
        }
        #expect(answered.value == 10 && outcome.okCount == 4 && lag.unsentCount == 0)
    }

    @Test func `What is sent late is told, and its latency begins when it was due`() throws {
        // All of it was due before it could be sent.
        let (outcome, lag) = try run(begunBefore: .milliseconds(200), Self.answerAtOnce)
        #expect(outcome.okCount == 10 && lag.lateCount == 10)
        #expect(outcome.latency.value(atShare: 0.01) >= 100_000_000)
    }
}
