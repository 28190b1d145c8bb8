import Base
import Glibc
import JSON
import Messages
import Testing
import Wire

@testable import PosternBench

@Suite struct ScenarioTests {
    private static func scenario(_ text: String) throws -> Scenario {
        try Scenario(JSONValue(parsing: [UInt8](text.utf8)), named: "s")
    }

    private static func workload(_ scenario: Scenario, sessions: Int = 3) -> Workload {
        var population = Population(tenantID: "acme")
        population.userCount = 1_000
        population.passwordUserCount = 100
        population.sessions = (0..<sessions).map {
            Session(idToken: [UInt8]("id-\($0)".utf8), refreshToken: [UInt8]("refresh-\($0)".utf8))
        }
        return Workload(
            mix: Mix(scenario), population: population, sessions: population.sessions, tokensMax: .max, driver: 0,
            run: 7, seed: 1)
    }

    private static func tokens(_ name: String) -> [UInt8] {
        AccountsSignUpResponse(tokens: TokenPair(idToken: Text("id-" + name), refreshToken: Text("re-" + name)))
            .encoded()
    }

    @Test func `A file says journeys, weights, steps and times to think`() throws {
        let scenario = try Self.scenario(
            """
            {"zipf": 1.1, "journeys": [{"name": "visit", "weight": 3, "steps": [{"do": "sign-in"},
             {"do": "verify", "times": 5, "think_ms": [10, 20]}, {"do": "sign-out", "think_ms": 7}]},
             {"steps": [{"do": "get"}]}]}
            """)
        #expect(scenario.zipf == 1.1 && scenario.journeys.map(\.weight) == [3, 1])
        #expect(scenario.journeys[0].steps[1] == Scenario.Step(operation: .verify, times: 5, think: 10...20))
        #expect(scenario.journeys[0].steps[2].think == 7...7)
        #expect(scenario.operations == [.get, .verify, .signIn, .signOut])
        #expect(!scenario.usesSeeded(.verify), "the journey's own session")
    }

    @Test(arguments: [
        "{}", "[]", "{\"journeys\": []}", "{\"journeys\": [{}]}", "{\"journeys\": [{\"steps\": []}]}",
        "{\"journeys\": [{\"steps\": [{\"do\": \"fly\"}]}]}", "{\"journeys\": [{\"steps\": [{\"do\": \"idp\"}]}]}",
        "{\"journeys\": [{\"steps\": [{\"do\": \"get\", \"time\": 2}]}]}", "{\"journeys\": [{\"steps\": [1]}]}",
        "{\"journeys\": [{\"steps\": [{\"do\": \"get\", \"times\": 0}]}]}",
        "{\"journeys\": [{\"steps\": [{\"do\": \"get\", \"times\": 1001}]}]}",
        "{\"journeys\": [{\"steps\": [{\"do\": \"get\", \"think_ms\": [5, 4]}]}]}",
        "{\"journeys\": [{\"steps\": [{\"do\": \"get\", \"think_ms\": 3600001}]}]}",
        "{\"journeys\": [{\"weight\": 0, \"steps\": [{\"do\": \"get\"}]}]}",
        "{\"journeys\": [{\"steps\": [{\"do\": \"get\"}]}], \"zipf\": 5.1}",
        "{\"journeys\": [{\"steps\": [{\"do\": \"sign-out\"}]}]}",
        "{\"journeys\": [{\"steps\": [{\"do\": \"sign-in\"}, {\"do\": \"sign-out\"}, {\"do\": \"verify\"}]}]}",
    ])
    func `What is no scenario is refused`(text: String) {
        #expect(throws: UsageError.self) { try Self.scenario(text) }
    }

    @Test func `As many journeys and steps as there may be, and one more`() throws {
        func text(_ journeys: Int, _ steps: Int) -> String {
            let step = Array(repeating: "{\"do\": \"get\"}", count: steps).joined(separator: ",")
            let journey = Array(repeating: "{\"steps\": [\(step)]}", count: journeys).joined(separator: ",")
            return "{\"journeys\": [\(journey)]}"
        }
        #expect(try Self.scenario(text(Scenario.journeysMax, Scenario.stepsMax)).journeys.count == Scenario.journeysMax)
        #expect(throws: UsageError.self) { try Self.scenario(text(Scenario.journeysMax + 1, 1)) }
        #expect(throws: UsageError.self) { try Self.scenario(text(1, Scenario.stepsMax + 1)) }
    }

    @Test(arguments: Scenario.presets)
    func `Each preset goes through its steps, and each request is one its method reads`(scenario: Scenario) throws {
        #expect(throws: Never.self) { try scenario.check() }
        var workload = Self.workload(scenario)
        var used: Set<PosternBench.Operation> = []
        for number in 0..<6_000 {
            var buffer = ByteBuffer()
            var request = workload.appendRequest(stream: 1, to: &buffer)
            var stepCount = 1
            while true {
                used.insert(request.operation)
                let sent = try SentRequest(reading: buffer.copyBytes())
                #expect(
                    (sent.service, sent.method) == (request.operation.service.string, request.operation.method.string))
                let answer = Self.tokens("\(number)-\(stepCount)")
                #expect(answer.withUnsafeBytes { workload.answered(request, $0) })
                guard workload.wait(inJourney: request.journey) != nil else { break }
                buffer = ByteBuffer()
                request = workload.appendRequest(stream: 1, journey: request.journey, to: &buffer)
                stepCount += 1
            }
            workload.end(journey: request.journey)
        }
        #expect(used == Set(scenario.operations))
    }

    @Test func `A journey uses the newest tokens of its own session, and ends it`() throws {
        let steps: [PosternBench.Operation] = [.signUp, .refresh, .verify, .lookup, .signOut]
        var workload = Self.workload(
            Scenario(
                name: "s",
                journeys: [
                    Scenario.Journey(name: "j", weight: 1, steps: steps.map { Scenario.Step(operation: $0) })
                ]))
        var journey = Workload.noContext
        for (number, operation) in steps.enumerated() {
            var buffer = ByteBuffer()
            let request = workload.appendRequest(stream: 1, journey: journey, to: &buffer)
            journey = request.journey
            let payload = try SentRequest(reading: buffer.copyBytes()).payload
            switch operation {
            case .refresh: #expect(try TokensRefreshRequest(decoding: payload).refreshToken == "re-0")
            case .verify: #expect(try TokensVerifyIdTokenRequest(decoding: payload).idToken == "id-1")
            case .lookup: #expect(try AccountsLookupRequest(decoding: payload).idToken == "id-1")
            case .signOut: #expect(try SessionsSignOutRequest(decoding: payload).refreshToken == "re-1")
            default: #expect(request.operation == .signUp)
            }
            let answer = operation == .signOut ? [] : operation.givesTokens ? Self.tokens("\(number)") : [1]
            #expect(answer.withUnsafeBytes { workload.answered(request, $0) })
            #expect((workload.wait(inJourney: journey) == nil) == (operation == .signOut))
        }
    }

    @Test func `A journey ends with its first failure`() {
        var workload = Self.workload(
            Scenario(
                name: "s",
                journeys: [Scenario.Journey(name: "j", weight: 1, steps: [Scenario.Step(operation: .get, times: 9)])]))
        var buffer = ByteBuffer()
        let request = workload.appendRequest(stream: 1, to: &buffer)
        workload.failed(request)
        #expect(workload.wait(inJourney: request.journey) == nil)
    }

    /// Each journey is three requests, 10 ms apart; the second and third count from when they were due.
    @Test(arguments: [true, false])
    func `Journeys think between their steps, in an open and in a closed loop`(isOpen: Bool) throws {
        let network = SimulatedNetwork(links: 4) { _, sent in sent + 0.005 }
        let scenario = Scenario(
            name: "s",
            journeys: [
                Scenario.Journey(
                    name: "j", weight: 1,
                    steps: [
                        Scenario.Step(operation: .get), Scenario.Step(operation: .get, times: 2, think: 10...10),
                    ])
            ])
        let loop = try LoadLoop(Self.workload(scenario), over: network, slotsPerLane: isOpen ? 50 : 1)
        let arrivals = Arrivals(RateSchedule(perSecond: 100), .uniform, seed: 1)
        try loop.run(
            RunPeriods(from: network.begin, warmup: .seconds(1), counted: .seconds(10), drain: .seconds(1)),
            isOpen ? .open(arrivals, outstandingMax: 200, whenFull: .queue) : .closed(inFlight: 1, think: .zero)
        ) { false }
        let record = loop.recorder.operations[PosternBench.Operation.get.rawValue]
        #expect(record.failures.isEmpty)
        #expect(record.response.value(atShare: 1) <= 5_005_000 && record.response.value(atShare: 0) >= 5_000_000)
        // Open: 100 journeys a second. Closed: four at once, 35 ms each.
        let expected = isOpen ? 3_000 : 4 * 10 * 1_000 / 35 * 3
        #expect(abs(record.okCount - expected) <= 20, "\(record.okCount)")
    }

    @Test func `Zipf numbers come as often as they should`() {
        for exponent in [0.0, 0.5, 1.0, 1.1, 2.0] {
            let zipf = Zipf(count: 1_000, exponent: exponent)
            var random = SeededGenerator(seed: 5)
            var counts = [Int](repeating: 0, count: 1_000)
            for _ in 0..<200_000 { counts[zipf.next(&random)] += 1 }
            let weights = (1...1_000).map { 1 / pow(Double($0), exponent) }
            let total = weights.reduce(0, +)
            for number in [0, 1, 9, 99] {
                let expected = weights[number] / total * 200_000
                // Five standard deviations.
                #expect(
                    abs(Double(counts[number]) - expected) <= 5 * expected.squareRoot() + 1, "\(exponent), \(number)")
            }
        }
        var random = SeededGenerator(seed: 5)
        #expect(Zipf(count: 0, exponent: 1).next(&random) == 0 && Zipf(count: 1, exponent: 9).next(&random) == 0)
    }
}
