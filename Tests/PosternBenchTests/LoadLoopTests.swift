import Base
import Synchronization
import TestSupport
import Testing
import Wire

@testable import PosternBench

/// The loop over TCP.
@Suite struct LoadLoopTests {
    private static func workload() throws -> Workload {
        var population = Population(tenantID: "bench")
        population.userCount = 10
        return Workload(
            mix: try Mix(parsing: "get=1"), population: population, sessions: [], tokensMax: 1, driver: 0, run: 1,
            seed: 1)
    }

    private static let answerAtOnce: StubServer.Answer = { streams, output in
        // Newest first: a server answers in any order.
        for stream in streams.reversed() { output.appendResponse(stream: stream) { $0.append(1) } }
        return true
    }

    /// Sends `get`s to a stub, for `counted` or until the stub has received `most` of them.
    private func run(
        connections: Int, slots: Int, _ pacing: Pacing, counted: Duration, until most: Int = .max,
        _ answer: @escaping StubServer.Answer
    ) throws -> (record: OperationRecord, recorder: Recorder, connectionsLost: Int, received: Int) {
        let received = Counter()
        let server = try StubServer(connections: connections) { streams, output in
            received.add(streams.count)
            return answer(streams, &output)
        }
        var network: SocketNetwork? = try SocketNetwork(
            to: server.address, authorization: "Bearer none", connections: connections)
        var loop: LoadLoop? = try network.map { try LoadLoop(Self.workload(), over: $0, slotsPerLane: slots) }
        network = nil
        let periods = RunPeriods(from: .now, warmup: .zero, counted: counted, drain: .seconds(5))
        let outcome = Result<Void, any Error> {
            if let loop { try loop.run(periods, pacing) { received.value >= most } }
        }
        let measured = loop?.recorder
        let lost = loop?.connectionsLost ?? 0
        loop = nil
        server.finish()
        try outcome.get()
        let recorder = try #require(measured)
        return (recorder.operations[PosternBench.Operation.get.rawValue], recorder, lost, received.value)
    }

    @Test(arguments: [(1, 1), (3, 1), (2, 32)])
    func `Each answer is followed by the next request until the end, and each is counted once`(shape: (Int, Int)) throws
    {
        let result = try run(
            connections: shape.0, slots: shape.1, .closed(inFlight: shape.1, think: .zero), counted: .seconds(3_600),
            until: 2_000, Self.answerAtOnce)
        #expect(result.record.okCount == result.received && result.received >= 2_000)
        #expect(result.record.failures.isEmpty && result.connectionsLost == 0)
    }

    @Test func `A connection that the server closes is lost with what was in flight`() throws {
        let result = try run(
            connections: 1, slots: 2, .closed(inFlight: 2, think: .zero), counted: .seconds(3_600)
        ) { streams, output in
            guard streams.allSatisfy({ $0 < 9 }) else { return false }
            return Self.answerAtOnce(streams, &output)
        }
        #expect(result.connectionsLost == 1)
        #expect(result.record.errors == ["CONNECTION_LOST": 2])
    }

    @Test func `A closed loop whose server takes no more requests says that it ended early`() throws {
        #expect {
            _ = try run(
                connections: 2, slots: 1, .closed(inFlight: 1, think: .zero), counted: .seconds(3_600)
            ) { streams, output in
                _ = Self.answerAtOnce(streams, &output)
                if streams.contains(where: { $0 > 9 }) {
                    ControlFrame.goAway(lastStream: StreamID.max, .shutdown).append(to: &output)
                }
                return true
            }
        } throws: { error in
            "\(error)".contains("ended early")
        }
    }

    @Test func `A request of a schedule counts from when it was due, also when the server stood still`() throws {
        let held = Mutex<[UInt32]>([])
        let arrivals = Arrivals(RateSchedule(perSecond: 100), .uniform, seed: 1)
        let result = try run(
            connections: 1, slots: 32, .open(arrivals, outstandingMax: 32, whenFull: .queue),
            counted: .milliseconds(100)
        ) { streams, output in
            let due = held.withLock { held -> [UInt32] in
                held += streams
                return held.count == 10 ? held : []
            }
            for stream in due { output.appendResponse(stream: stream) { $0.append(1) } }
            return true
        }
        #expect(result.record.okCount == 10 && result.recorder.unsent.isEmpty)
        // The first request was due 90 ms before the last, and was answered after it.
        #expect(result.record.response.maximum >= 90_000_000)
    }

    @Test func `Refusals and answers of another kind are failures`() throws {
        let result = try run(
            connections: 1, slots: 4, .closed(inFlight: 4, think: .zero), counted: .seconds(3_600), until: 400
        ) { streams, output in
            for stream in streams {
                switch stream % 8 {
                case 1: output.appendFailure(stream: stream, Failure(.notFound, "USER_NOT_FOUND", "gone"))
                case 3: output.appendResponse(stream: stream) { _ in }
                default: output.appendResponse(stream: stream) { $0.append(1) }
                }
            }
            return true
        }
        #expect(Set(result.record.errors.keys) == ["USER_NOT_FOUND", "UNEXPECTED_ANSWER"])
        #expect(result.record.okCount + result.record.errorCount == result.received)
        // The rate has the good answers alone.
        #expect(result.record.inTimeCount == result.record.okCount)
    }
}

/// Shared by the stub's threads and the loop.
private final class Counter: Sendable {
    private let count = Atomic<Int>(0)

    var value: Int { count.load(ordering: .relaxed) }
    func add(_ number: Int) { count.add(number, ordering: .relaxed) }
}
