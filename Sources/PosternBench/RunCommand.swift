import Base

/// `postern-bench run`: load of a mix of operations, as fast as it is answered or at the times of a schedule.
struct RunCommand {
    private let judged: JudgedRun

    init(_ arguments: inout Arguments) throws {
        let options = try LoadOptions(&arguments)
        let plan = try Self.plan(&arguments, options)
        judged = try JudgedRun(&arguments, options, plan)
    }

    func run() throws { try judged.run("run") }

    private static func plan(_ arguments: inout Arguments, _ options: LoadOptions) throws -> RunPlan {
        let inFlight = try arguments.number("--in-flight", in: 1...4_096)
        let think = try arguments.number("--think-ms", default: 0, in: 0...3_600_000)
        let rate = try arguments.text("--rate").map { try RateSchedule(parsing: $0) }
        let ofSchedule = ["--arrivals", "--when-full"].first { arguments.has($0) }
        let pattern = try arguments.choice("--arrivals", default: ArrivalPattern.poisson)
        let outstanding = try arguments.number("--max-outstanding", in: 1...1_000_000)
        let whenFull = try arguments.choice("--when-full", default: Pacing.WhenFull.queue)
        let warmup = try arguments.number("--warmup", default: 1, in: 0...3_600)
        let seconds = try arguments.number("--seconds", in: 1...86_400)
        guard let rate else {
            // Without a schedule each request waits for an answer: whoever gave these flags expects something else.
            if let flag = outstanding == nil ? ofSchedule : "--max-outstanding" {
                throw UsageError("\(flag): goes with --rate")
            }
            return RunPlan(
                loop: .closed(inFlight: inFlight ?? 1, think: .milliseconds(think)), warmup: warmup,
                seconds: seconds ?? 5)
        }
        guard inFlight == nil, think == 0 else {
            throw UsageError("--in-flight and --think-ms go with a closed loop; --rate says how much there is to do")
        }
        let own = rate.hasEnd ? min(86_400, Int(rate.seconds.rounded(.up))) : 5
        guard rate.segments.count == 1 || rate.hasEnd || Double(seconds ?? own) <= rate.seconds else {
            throw UsageError("--rate: bursts that often are known for \(Int(rate.seconds)) s at most")
        }
        let outstandingMax = outstanding ?? options.connections * RunPlan.outstandingPerConnection
        guard outstandingMax >= options.connections else {
            throw UsageError("--max-outstanding: at least as many as --connections")
        }
        return RunPlan(
            loop: .open(rate, pattern, outstandingMax: outstandingMax, whenFull: whenFull), warmup: warmup,
            seconds: seconds ?? own)
    }
}
