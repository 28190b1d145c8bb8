import Base
import Synchronization
import TestSupport
import Testing
import Wire

@testable import PosternBench

@Suite struct DriverTests {
    private static func appendMessage(_ stream: UInt32, _ output: inout ByteBuffer) {
        output.appendResponse(stream: stream) { $0.append(1) }
    }

    /// Runs `get`s against a stub until it was sent `requests` of them; what the driver then says.
    private func drive(
        connections: Int, inFlight: Int, until requests: Int,
        answer: @escaping @Sendable (UInt32, inout ByteBuffer) -> Bool
    ) throws -> (outcome: Outcome, connectionsLost: Int, received: Int) {
        let received = Counter()
        let server = try StubServer(connections: connections) { streams, output in
            received.add(streams.count)
            // Newest first: a server answers in any order.
            for stream in streams.reversed() {
                guard answer(stream, &output) else { return false }
            }
            return true
        }
        defer { server.finish() }
        var population = Population(tenantID: "bench")
        population.userCount = 10
        let workload = Workload(
            mix: try Mix(parsing: "get=1"), population: population, sessions: [], tokensMax: 1, driver: 0, run: 1,
            seed: 1)
        let driver = try Driver(
            workload, address: server.address, authorization: "Bearer none", connections: connections,
            inFlight: inFlight)
        let schedule = Schedule(from: .now, warmup: .zero, counted: .seconds(3_600), drain: .zero)
        try driver.run(schedule) { received.value >= requests }
        return (driver.outcomes[Operation.get.rawValue], driver.connectionsLost, received.value)
    }

    @Test(arguments: [(1, 1), (3, 1), (2, 32)])
    func `Each answer is followed by the next request until the end, and each is counted once`(shape: (Int, Int)) throws
    {
        let result = try drive(connections: shape.0, inFlight: shape.1, until: 2_000) { stream, output in
            Self.appendMessage(stream, &output)
            return true
        }
        #expect(result.outcome.okCount == result.received)
        #expect(result.received >= 2_000)
        #expect(result.outcome.errors.isEmpty)
        #expect(result.connectionsLost == 0)
    }

    @Test func `Failures are counted by reason, apart from what went well`() throws {
        let result = try drive(connections: 1, inFlight: 4, until: 400) { stream, output in
            switch stream % 8 {
            case 1: output.appendFailure(stream: stream, Failure(.notFound, "USER_NOT_FOUND", "gone"))
            case 3: output.appendResponse(stream: stream) { _ in }
            default: Self.appendMessage(stream, &output)
            }
            return true
        }
        #expect(Set(result.outcome.errors.keys) == ["USER_NOT_FOUND", "UNEXPECTED_ANSWER"])
        #expect(result.outcome.okCount + result.outcome.errorCount == result.received)
        #expect(result.outcome.okCount >= 200)
    }

    @Test func `A connection that the server closes is lost with what was in flight`() throws {
        let result = try drive(connections: 1, inFlight: 2, until: .max) { stream, output in
            guard stream < 9 else { return false }
            Self.appendMessage(stream, &output)
            return true
        }
        #expect(result.connectionsLost == 1)
        #expect(result.outcome.errors == ["CONNECTION_LOST": 2])
    }

    @Test func `More requests at once than the server takes are refused before the run`() throws {
        let server = try StubServer(connections: 1) { _, _ in true }
        defer { server.finish() }
        var population = Population(tenantID: "bench")
        population.userCount = 1
        let workload = Workload(
            mix: try Mix(parsing: "get=1"), population: population, sessions: [], tokensMax: 1, driver: 0, run: 1,
            seed: 1)
        #expect(throws: BenchError.self) {
            _ = try Driver(workload, address: server.address, authorization: "", connections: 1, inFlight: 65)
        }
    }
}

/// Shared by the stub's threads and the driver.
private final class Counter: Sendable {
    private let count = Atomic<Int>(0)

    var value: Int { count.load(ordering: .relaxed) }
    func add(_ number: Int) { count.add(number, ordering: .relaxed) }
}
