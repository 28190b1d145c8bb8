import Base
import JSON

/// `postern-bench saturate`: the highest rate at which the objectives hold.
struct SaturateCommand {
    private let options: LoadOptions
    private let objectives: [Objective]
    private let from: Int
    private let precision: Int
    private let seconds: Int
    private let warmup: Int
    private let outstanding: Int?
    private let files: ResultFiles

    /// The most steps, so that the search ends whatever the answers are.
    private static let stepsMax = 60

    init(_ arguments: inout Arguments) throws {
        options = try LoadOptions(&arguments)
        objectives = try Objective.parse(
            arguments.required("--slo"), operations: options.mix.operations.map(\.name), isOpenLoop: true)
        from = try arguments.number("--from", default: 100, in: 1...Int(RateSchedule.rateMax))
        precision = try arguments.number("--precision", default: 5, in: 1...50)
        seconds = try arguments.number("--step-seconds", default: 5, in: 1...3_600)
        warmup = try arguments.number("--warmup", default: 1, in: 0...3_600)
        outstanding = try arguments.number("--max-outstanding", in: 1...1_000_000)
        files = try ResultFiles(&arguments)
        try arguments.finish()
        guard outstandingMax >= options.connections else {
            throw UsageError("--max-outstanding: at least as many as --connections")
        }
    }

    private var outstandingMax: Int { outstanding ?? options.connections * RunPlan.outstandingPerConnection }

    func run() throws {
        Interruption.listen()
        var search = RateSearch(from: from, precisionPercent: precision)
        let session = try LoadSession(options, slotsPerLane: plan(from).slotsPerLane(connections: options.connections))
        session.announce("saturate", plan(from))
        var steps: [RunResult] = []
        while let rate = search.next, steps.count < Self.stepsMax, !Interruption.isAsked {
            var step = session.run(plan(rate))
            step.verdicts = objectives.map { $0.verdict(on: step) }
            guard !step.isInterrupted else {
                // A part of a step says nothing about its rate.
                steps.append(step)
                break
            }
            let holds = holds(step)
            search.note(holds)
            let figures = step.verdicts.map { "\($0.objective) \($0.measured)" }.joined(separator: ", ")
            TextFile.printError("\(holds ? "holds" : "fails"): \(rate)/s, \(figures)\n")
            steps.append(step)
            if step.connectionsLost > 0 || step.failure != nil { break }
        }
        let saved = Result { try session.saveSessions() }
        var result = try RunResult.inTurn(steps)
        result.configuration.removeAll { $0.name == "rate" || $0.name == "seconds" }
        result.configuration += [
            .init("first_rate_per_second", .integer(Int64(from))), .init("step_seconds", .integer(Int64(seconds))),
            .init("objectives", .string(Text(objectives.map(\.description).joined(separator: ", ")))),
            .init("saturation_per_second", search.best.map { .integer(Int64($0)) } ?? .null),
            .init("failed_per_second", search.lowestFailed.map { .integer(Int64($0)) } ?? .null),
            .init("failed_because_of", .string(Text(limit(search, steps).rawValue))),
        ]
        try files.write(result)
        try saved.get()
        try judge(search, result, steps)
    }

    private func plan(_ rate: Int) -> RunPlan {
        RunPlan(
            loop: .open(RateSchedule(perSecond: rate), .poisson, outstandingMax: outstandingMax, whenFull: .queue),
            warmup: warmup, seconds: seconds)
    }

    /// A rate that was not achieved does not hold, whatever its latencies were.
    private func holds(_ step: RunResult) -> Bool {
        let boundsErrors = objectives.contains { if case .errorRate = $0.metric { true } else { false } }
        return step.verdicts.allSatisfy(\.holds) && (step.achievedShare ?? 0) > 0.97
            && (boundsErrors || step.errorShare == 0)
    }

    /// The reason why the lowest failed rate failed. If it is the load tool, the rate says nothing about the server.
    private func limit(_ search: RateSearch, _ steps: [RunResult]) -> RunResult.Limit {
        let failed = search.lowestFailed.map(Double.init)
        return steps.last { $0.target == failed && !holds($0) }?.limit ?? .server
    }

    private func judge(_ search: RateSearch, _ result: RunResult, _ steps: [RunResult]) throws {
        if result.isInterrupted { throw BenchError(.interrupted, "interrupted: the search is not over") }
        if result.connectionsLost > 0 { throw BenchError(.failed, "\(result.connectionsLost) connections were lost") }
        if let failure = result.failure { throw BenchError(.failed, failure) }
        guard let best = search.best else {
            throw BenchError(.objective, "the objectives do not even hold at \(search.lowestFailed ?? from) a second")
        }
        let why =
            switch limit(search, steps) {
            case .server: ""
            case .machine: " (all processors were busy there, with the load tool beside the server)"
            case .loadTool: " (the load tool was the bottleneck there, not the server)"
            }
        try TextFile.printOut(
            "highest rate that holds: \(best)/s"
                + (search.lowestFailed.map { ", and \($0)/s does not" } ?? ", the most this tool sends") + why + "\n")
    }
}
