import Base
import Glibc

/// The progress of a run, on stderr: one line that is drawn again in a terminal, a line a second anywhere else.
struct LiveView {
    private let loops: [any Load]
    private let plan: RunPlan
    private let isShown: Bool
    private let isTerminal = isatty(STDERR_FILENO) == 1

    init(_ loops: [any Load], _ plan: RunPlan, isShown: Bool) {
        self.loops = loops
        self.plan = plan
        self.isShown = isShown
    }

    /// Shows the slice that has just ended, from 1. A busy thread publishes it a moment later: then its slice before is
    /// shown.
    func show(_ number: Int) {
        guard isShown else { return }
        var total = SliceRecord()
        for loop in loops {
            for record in loop.live.second.operations.values { total.merge(record) }
        }
        let inFlight = loops.reduce(0) { $0 + $1.live.inFlight }
        TextFile.printError(
            isTerminal ? "\r\u{1B}[K" + line(number, total, inFlight) : line(number, total, inFlight) + "\n")
    }

    func finish() { if isShown && isTerminal { TextFile.printError("\n") } }

    private func line(_ number: Int, _ record: SliceRecord, _ inFlight: Int) -> String {
        let slice = RunPeriods(from: .now, warmup: .zero, counted: .seconds(plan.seconds), drain: .zero).slice
        let seconds = Double(slice.microseconds) / 1e6
        var target = ""
        if case .open(let schedule, _, _, _) = plan.loop {
            let start = Double(number - 1) * seconds
            target = " of \(decimal(schedule.average(from: start, to: start + seconds), places: 0))"
        }
        func milliseconds(_ share: Double) -> String {
            decimal(Double(record.response.value(atShare: share)) / 1e6, places: 2)
        }
        return "\(decimal(Double(number) * seconds, places: 0)) s: "
            + "\(decimal(Double(record.response.count) / seconds, places: 0))/s\(target), \(inFlight) in flight, "
            + "p50 \(milliseconds(0.5)) ms, p99 \(milliseconds(0.99)) ms, \(record.errorCount) errors"
    }
}
