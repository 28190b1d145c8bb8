import Base

/// `postern-bench replay`: the requests of a trace, each when it was recorded.
struct ReplayCommand {
    private let trace: Trace
    private let judged: JudgedRun

    init(_ arguments: inout Arguments) throws {
        guard arguments.operands.count == 1 else {
            throw UsageError("replay: one trace, as in replay trace.ndjson --state state")
        }
        let speed = try arguments.decimal("--speed", default: "1", in: 0.01...100)
        trace = try Trace.load(arguments.operands[0]).atSpeed(speed)
        let options = try LoadOptions(&arguments, trace: trace)
        let outstanding = try arguments.number("--max-outstanding", in: 1...1_000_000)
        let whenFull = try arguments.choice("--when-full", default: Pacing.WhenFull.queue)
        let outstandingMax = outstanding ?? options.connections * RunPlan.outstandingPerConnection
        guard outstandingMax >= options.connections else {
            throw UsageError("--max-outstanding: at least as many as --connections")
        }
        guard trace.seconds < 86_400 else { throw UsageError("--speed: longer than a day") }
        var plan = RunPlan(
            loop: .open(trace.schedule, .uniform, outstandingMax: outstandingMax, whenFull: whenFull), warmup: 0,
            seconds: Int(trace.seconds) + 1)
        plan.isRecorded = true
        judged = try JudgedRun(&arguments, options, plan)
    }

    func run() throws {
        if !trace.left.isEmpty {
            let methods = trace.left.sorted { $0.value > $1.value }.prefix(8).map { "\($0.key) \($0.value)" }
            let count = trace.left.values.reduce(0, +)
            TextFile.printError(
                "postern-bench replay: not replayed: \(count) calls (\(methods.joined(separator: ", ")))\n")
        }
        if trace.oneIn > 1 {
            TextFile.printError(
                "postern-bench replay: the log has one call in \(trace.oneIn): --speed \(trace.oneIn) makes up for it\n"
            )
        }
        try judged.run("replay")
    }
}
