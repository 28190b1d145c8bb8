/// A run with its objectives and the files of its result. `run` and `replay` share it.
struct JudgedRun {
    let options: LoadOptions
    let plan: RunPlan
    private let objectives: [Objective]
    private let failuresMax: Int
    private let files: ResultFiles

    init(_ arguments: inout Arguments, _ options: LoadOptions, _ plan: RunPlan) throws {
        self.options = options
        self.plan = plan
        let slo = arguments.text("--slo")
        let (names, isOpen) = (options.mix.operations.map(\.name), plan.isOpen)
        objectives = try slo.map { try Objective.parse($0, operations: names, isOpenLoop: isOpen) } ?? []
        // An objective for failures takes the place of the bound that holds without one.
        let boundsErrors = objectives.contains { if case .errorRate = $0.metric { true } else { false } }
        failuresMax = try arguments.number("--failures-max", default: 0, in: 0...100, unless: boundsErrors ? 100 : nil)
        files = try ResultFiles(&arguments)
        try arguments.finish()
    }

    func run(_ command: String) throws {
        Interruption.listen()
        let session = try LoadSession(options, slotsPerLane: plan.slotsPerLane(connections: options.connections))
        session.announce(command, plan)
        var result = session.run(plan)
        result.verdicts = objectives.map { $0.verdict(on: result) }
        let saved = Result { try session.saveSessions() }
        try files.write(result)
        try saved.get()
        try result.check(failuresMaxPercent: failuresMax)
    }
}
