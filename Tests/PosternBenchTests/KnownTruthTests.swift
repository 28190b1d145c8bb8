import Base
import Testing

@testable import PosternBench

/// The loops against a server whose times are known: they must report these times.
@Suite struct KnownTruthTests {
    private typealias Loop = LoadLoop<SimulatedNetwork>

    private static func workload() throws -> Workload {
        var population = Population(tenantID: "bench")
        population.userCount = 10
        return Workload(
            mix: try Mix(parsing: "get=1"), population: population, sessions: [], tokensMax: 1, driver: 0, run: 1,
            seed: 1)
    }

    /// Runs for `seconds` of simulated time after one second of warm-up.
    private static func run(
        _ network: SimulatedNetwork, _ pacing: Pacing, slots: Int, seconds: Int = 10,
        isInterrupted: () -> Bool = { false }
    ) throws -> Recorder {
        let loop = try Loop(workload(), over: network, slotsPerLane: slots)
        try loop.run(
            RunPeriods(
                from: network.begin, warmup: .seconds(1), counted: .seconds(seconds), drain: .seconds(10)), pacing,
            isInterrupted: isInterrupted)
        return loop.recorder
    }

    private static func get(_ recorder: Recorder) -> OperationRecord {
        recorder.operations[PosternBench.Operation.get.rawValue]
    }

    private static func open(
        _ perSecond: Int, _ pattern: ArrivalPattern = .poisson, most: Int = 1_000,
        whenFull: Pacing.WhenFull = .queue, warmup: Double = 1
    ) -> Pacing {
        .open(
            Arrivals(RateSchedule(perSecond: perSecond).warmedUp(for: warmup), pattern, seed: 7), outstandingMax: most,
            whenFull: whenFull)
    }

    /// Expects the percentile to be within 2 percent of `seconds`.
    private static func expect(
        _ histogram: Histogram, _ share: Double, seconds: Double, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let measured = Double(histogram.value(atShare: share)) / 1e9
        #expect(
            abs(measured - seconds) <= seconds * 0.02, "\(share): \(measured) s, expected \(seconds) s",
            sourceLocation: sourceLocation)
    }

    private static func bimodal() -> (Int, Double) -> Double? {
        var random = SeededGenerator(seed: 3)
        return { _, sent in sent + (random.unit() < 0.9 ? 0.001 : 0.010) }
    }

    @Test func `A closed loop reports a fixed service time, and the rate that follows from it`() throws {
        let network = SimulatedNetwork(links: 4) { _, sent in sent + 0.004 }
        let record = Self.get(try Self.run(network, .closed(inFlight: 2, think: .zero), slots: 2))
        for share in [0.0, 0.5, 0.99, 1] { Self.expect(record.response, share, seconds: 0.004) }
        #expect((19_900...20_100).contains(record.okCount))
        #expect(network.inFlightMax == 8)
    }

    @Test func `A closed loop reports two service times in their shares`() throws {
        let network = SimulatedNetwork(links: 10, answer: Self.bimodal())
        let response = Self.get(try Self.run(network, .closed(inFlight: 1, think: .zero), slots: 1)).response
        for share in [0.01, 0.5, 0.89] { Self.expect(response, share, seconds: 0.001) }
        for share in [0.91, 0.99, 1] { Self.expect(response, share, seconds: 0.010) }
    }

    @Test func `A closed loop thinks between an answer and the next request`() throws {
        let network = SimulatedNetwork(links: 10) { _, sent in sent + 0.010 }
        let record = Self.get(try Self.run(network, .closed(inFlight: 1, think: .milliseconds(40)), slots: 1))
        Self.expect(record.response, 0.99, seconds: 0.010)
        // 10 connections, a request of each every 50 ms.
        #expect((1_980...2_020).contains(record.okCount))
    }

    @Test(arguments: ArrivalPattern.allCases)
    func `An open loop reports fixed and two service times`(pattern: ArrivalPattern) throws {
        let fixed = SimulatedNetwork(links: 8) { _, sent in sent + 0.005 }
        let record = Self.get(try Self.run(fixed, Self.open(2_000, pattern), slots: 200))
        for histogram in [record.response, record.service] {
            for share in [0.0, 0.5, 0.99, 1] { Self.expect(histogram, share, seconds: 0.005) }
        }
        #expect(abs(record.okCount - 20_000) < 600)  // Poisson: four standard deviations
        let two = SimulatedNetwork(links: 8, answer: Self.bimodal())
        let response = Self.get(try Self.run(two, Self.open(2_000, pattern), slots: 200)).response
        for share in [0.01, 0.5, 0.89] { Self.expect(response, share, seconds: 0.001) }
        for share in [0.91, 0.99, 1] { Self.expect(response, share, seconds: 0.010) }
    }

    /// Answers take 1 ms, but no answer comes from second 3 to second 4.
    private static func stalling(_: Int, sent: Double) -> Double? {
        let answered = sent + 0.001
        return (3.0..<4.0).contains(answered) ? 4.001 : answered
    }

    /// 1,000 requests a second, at most four of them in flight. The thousand requests that became due in the stall
    /// are made up for at 4,000 a second, while others become due. A request that was due x seconds after the stall
    /// began is answered 1 - 0.75 x seconds later, until x is 4/3; that is 1,333 of 10,000 requests.
    @Test func `A stall of a second shows in response and not in service time`() throws {
        let network = SimulatedNetwork(links: 4, answer: Self.stalling)
        let recorder = try Self.run(network, Self.open(1_000, .uniform, most: 4), slots: 1)
        let record = Self.get(recorder)
        #expect(record.okCount == 10_000 && recorder.unsent.isEmpty && network.inFlightMax == 4)
        Self.expect(record.response, 0.5, seconds: 0.001)
        Self.expect(record.response, 0.90, seconds: 0.25)
        Self.expect(record.response, 0.95, seconds: 0.625)
        Self.expect(record.response, 0.99, seconds: 0.925)
        Self.expect(record.response, 1, seconds: 1.0)
        for share in [0.5, 0.99, 0.999] { Self.expect(record.service, share, seconds: 0.001) }
        Self.expect(record.scheduleLag, 0.99, seconds: 0.924)
        // The server was late, not the load.
        #expect(recorder.ownLag.value(atShare: 1) < 1_000_000 && recorder.lateCount == 0)
    }

    @Test func `A closed loop does not see the stall, but for the requests that were on their way`() throws {
        let network = SimulatedNetwork(links: 4, answer: Self.stalling)
        let record = Self.get(try Self.run(network, .closed(inFlight: 1, think: .zero), slots: 1))
        Self.expect(record.response, 0.99, seconds: 0.001)
        Self.expect(record.response, 1, seconds: 1.0)
    }

    @Test func `What is due in a stall is skipped when that is wanted, and counted`() throws {
        let network = SimulatedNetwork(links: 4, answer: Self.stalling)
        let recorder = try Self.run(network, Self.open(1_000, .uniform, most: 4, whenFull: .skip), slots: 1)
        let skipped = recorder.unsent["SKIPPED"] ?? 0
        #expect((990...1_000).contains(skipped))
        #expect(Self.get(recorder).okCount + skipped == 10_000)
        Self.expect(Self.get(recorder).response, 0.99, seconds: 0.001)
    }

    @Test func `A load tool that wakes late says so, and its delay is part of the response time`() throws {
        let network = SimulatedNetwork(links: 8) { _, sent in sent + 0.001 }
        network.wakesLate = .milliseconds(5)
        let recorder = try Self.run(network, Self.open(50, .uniform), slots: 16)
        #expect(recorder.lateCount > 450)
        Self.expect(recorder.ownLag, 0.5, seconds: 0.005)
        Self.expect(Self.get(recorder).response, 0.5, seconds: 0.006)
        Self.expect(Self.get(recorder).service, 0.5, seconds: 0.001)
        var result = RunResult()
        result.seconds = 10
        result.ownLag = recorder.ownLag
        #expect(result.isGeneratorLimited && result.warnings.contains { $0.contains("bottleneck") })
    }

    @Test func `Slices add up to the whole, second by second`() throws {
        let network = SimulatedNetwork(links: 4, answer: Self.stalling)
        let recorder = try Self.run(network, Self.open(1_000, .uniform, most: 4), slots: 1)
        let operation = PosternBench.Operation.get.rawValue
        let slices = try recorder.slices.map { slice in
            try slice.operations[operation].map { try #require(Histogram(encoded: $0.response)) } ?? Histogram()
        }
        #expect(slices.reduce(0) { $0 + $1.count } == 10_000)
        #expect(slices.prefix(10).map(\.count)[2] == 0, "the stall: nothing came")
        Self.expect(slices[3], 1, seconds: 1.0)
        Self.expect(slices[8], 1, seconds: 0.001)
        #expect(recorder.slices.prefix(10).reduce(0) { $0 + $1.sentCount } == recorder.sentCount)
    }

    @Test func `What a server cannot do by the end is told as not sent`() throws {
        // Each connection answers one request, and no more after that.
        let network = SimulatedNetwork(links: 2) { number, sent in number <= 2 ? sent + 0.001 : 1e6 }
        let recorder = try Self.run(network, Self.open(100, .uniform, most: 2, warmup: 0), slots: 1, seconds: 1)
        let record = Self.get(recorder)
        #expect(record.errors == ["UNANSWERED": 2])
        #expect(recorder.unsent == ["SERVER_TOO_FAR_BEHIND": 100])
    }

    @Test func `Failures are counted by reason and have latencies of their own`() throws {
        let network = SimulatedNetwork(links: 2) { number, sent in sent + (number % 4 == 0 ? 0.020 : 0.001) }
        network.isRefused = { $0 % 4 == 0 }
        let record = Self.get(try Self.run(network, Self.open(1_000), slots: 100))
        let refused = try #require(record.failures["USER_NOT_FOUND"])
        Self.expect(refused, 0.5, seconds: 0.020)
        Self.expect(record.response, 1, seconds: 0.001)
        #expect(abs(Double(refused.count) / Double(record.response.count) - 1.0 / 3) < 0.01)
    }

    @Test func `Connections that are lost lose what is on its way, and what is due after the last of them`() throws {
        let network = SimulatedNetwork(links: 2) { number, sent in number < 500 ? sent + 0.001 : nil }
        let recorder = try Self.run(network, Self.open(100, .uniform, warmup: 0), slots: 16, seconds: 9)
        let record = Self.get(recorder)
        #expect(record.errors == ["CONNECTION_LOST": 2])
        #expect(record.okCount + 2 + (recorder.unsent["CONNECTION_LOST"] ?? 0) == 900)
    }

    @Test func `An interrupted run keeps what it has and waits a second at most`() throws {
        let network = SimulatedNetwork(links: 2) { number, sent in number <= 300 ? sent + 0.001 : 1e6 }
        let recorder = try Self.run(network, Self.open(100, .uniform, warmup: 0), slots: 400, seconds: 3_000) {
            network.now() >= network.begin.advanced(by: .seconds(5))
        }
        #expect(network.now() <= network.begin.advanced(by: .milliseconds(6_200)))
        #expect(Self.get(recorder).okCount == 200 && recorder.unsent.isEmpty)
    }

    @Test func `A loop runs again over the same connections`() throws {
        let network = SimulatedNetwork(links: 2) { _, sent in sent + 0.001 }
        let loop = try Loop(Self.workload(), over: network, slotsPerLane: 32)
        for rate in [100, 300] {
            let periods = RunPeriods(from: network.now(), warmup: .zero, counted: .seconds(2), drain: .seconds(10))
            try loop.run(periods, Self.open(rate, .uniform, most: 64, warmup: 0)) { false }
            #expect(Self.get(loop.recorder).okCount == 2 * rate)
        }
    }

    @Test func `More requests at once than the server takes are refused before the run`() throws {
        let network = SimulatedNetwork(links: 1, streamsMax: 64) { _, _ in nil }
        #expect(throws: BenchError.self) { _ = try Loop(Self.workload(), over: network, slotsPerLane: 65) }
    }
}
