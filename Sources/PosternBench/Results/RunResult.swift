import Base
import JSON

/// The result of a run: the load that was asked for, the measurements, and how far to trust them.
struct RunResult: Sendable {
    /// One operation's requests.
    struct Operation: Sendable {
        var name: String
        var record: OperationRecord
    }

    /// A second of the run, or more of a long one.
    struct Slice: Sendable {
        var sentCount = 0
        /// Requests on their way at its end.
        var inFlight = 0
        /// The rate that was asked for; nil for a closed loop.
        var target: Double?
        /// CPUs that the server used; nil when its process is not known.
        var serverCPUShare: Double?
        /// CPUs that everything on the load tool's machine used; nil where a result does not say.
        var machineCPUShare: Double?
        /// The records, by the operation's name.
        var operations: [String: SliceRecord] = [:]
    }

    /// The server's process.
    struct ServerFigures: Sendable {
        var cpuMicroseconds: Int
        var residentByteCount: Int
        var anonymousByteCount: Int
        /// Calls of malloc while the run counted. Nil: they are not counted.
        var allocationCount: Int?

        func allocationsPerRequest(_ result: RunResult) -> Double? {
            allocationCount.map { Double($0) / Double(max(1, result.costedCount)) }
        }
    }

    static let version: Int64 = 1

    /// Flags and their values, the defaults as well.
    var configuration: [JSONValue.Member] = []
    /// Microseconds since 1970, when counting began.
    var startedAt: Int64 = 0
    /// The machine that the load ran on, and the name that the server gave its software.
    var host: [JSONValue.Member] = []
    var serverSoftware = ""
    /// How costly the tenant's password hashes are: a name, and a sentence.
    var hashes = (name: "unknown", description: "")
    var seconds = 0.0
    var sliceSeconds = 1
    /// The operations, in the order of the mix.
    var operations: [Operation] = []
    var series: [Slice] = []
    var connectionsLost = 0
    var isOpenLoop = false
    /// The average rate that was asked for; nil for a closed loop.
    var target: Double?
    /// A scenario's journeys that began before the end of the run, of those that a schedule had due in it. Nil: the
    /// load is no scenario, or has no schedule.
    var journeysBegun: Int?
    /// Requests that were due and not sent, by reason.
    var notSent: [String: Int] = [:]
    /// How late the generator sent by its own fault, in nanoseconds.
    var ownLag = Histogram()
    var sentLate = 0
    /// CPU time while the run counted: of this process, and of everything on the machine.
    var generatorCPUMicroseconds = 0
    var machineCPUMicroseconds = 0
    var generatorThreads = 1
    /// CPUs that the busiest thread of the load used; 0 when that is not known.
    var busiestThreadShare = 0.0
    /// The processors of the machines that the generators ran on.
    var processorCount = 1
    var server: ServerFigures?
    var isInterrupted = false
    /// The reason why the run ended early, if it did.
    var failure: String?
    var verdicts: [Objective.Verdict] = []

    /// Answers of either kind: the server worked for both.
    var answerCount: Int { operations.reduce(0) { $0 + $1.record.okCount + $1.record.errorCount } }
    var errorCount: Int { operations.reduce(0) { $0 + $1.record.errorCount } }
    var notSentCount: Int { notSent.values.reduce(0, +) }
    /// The answers for which the counted CPU time was spent. Good answers that came after the end are not among them:
    /// after a schedule that was too much for the server there are many. Of failures it is not known when they came, so
    /// all of them count.
    var costedCount: Int { operations.reduce(0) { $0 + $1.record.inTimeCount + $1.record.errorCount } }
    /// Requests, or a scenario's journeys, that a schedule had due while the run counted.
    var dueCount: Int { Int(clamping: ownLag.count) + notSentCount }
    /// Failed and unsent requests among all that were due.
    var errorShare: Double {
        let lost = errorCount + notSentCount
        return Double(lost) / Double(max(1, answerCount + notSentCount))
    }
    /// Answers a second that went well.
    var achieved: Double { operations.reduce(0) { $0 + rate(of: $1) } }
    /// The achieved share of what was due; nil for a closed loop. With arrivals by chance, what was due is seldom
    /// exactly what the rate says. For a scenario it is the share of journeys that began, because each has several
    /// requests.
    var achievedShare: Double? {
        guard let target else { return nil }
        let due = Double(dueCount)
        if let journeysBegun, due > 0 { return Double(journeysBegun) / due }
        return due > 0 ? achieved * seconds / due : target > 0 ? achieved / target : 1
    }

    /// True for a result of `saturate`, which tries one rate after the other.
    var isSearch: Bool { configuration.contains { $0.name == "saturation_per_second" } }

    var generatorCPUShare: Double { Double(generatorCPUMicroseconds) / 1e6 / seconds }
    var serverCPUShare: Double? { server.map { Double($0.cpuMicroseconds) / 1e6 / seconds } }
    var cpuMicrosecondsPerRequest: Double? { server.map { Double($0.cpuMicroseconds) / Double(max(1, costedCount)) } }
    var loadMicrosecondsPerRequest: Double { Double(generatorCPUMicroseconds) / Double(max(1, costedCount)) }
    /// The CPUs that other programs used, beside server and load. The server's own share counts here when its process
    /// is not known.
    var otherCPUShare: Double {
        max(
            0,
            Double(machineCPUMicroseconds - generatorCPUMicroseconds - (server?.cpuMicroseconds ?? 0)) / 1e6 / seconds)
    }

    func rate(of operation: Operation) -> Double { Double(operation.record.inTimeCount) / seconds }

    /// The values of all operations together.
    func total(_ part: KeyPath<OperationRecord, Histogram>) -> Histogram {
        var total = Histogram()
        for operation in operations { total.merge(operation.record[keyPath: part]) }
        return total
    }
}

// How far to trust the figures.
extension RunResult {
    /// The generator's own delay of one request in a hundred, above which its delay shows in the figures.
    static let ownLagMax: UInt64 = 1_000_000
    /// The share of a processor that a generator's thread can use before it has no time to spare.
    static let generatorShareMax = 0.9

    /// The share of its processors from which on a machine is busy.
    static let machineShareMax = 0.9

    /// The bottleneck that kept the figures from being better.
    enum Limit: String {
        case server
        /// The load tool had to wait for processors that it shares with the server.
        case machine
        case loadTool = "load_tool"
    }

    /// The load tool was too late, or its threads were busy: the figures are not the server's alone.
    var isGeneratorLimited: Bool { ownLag.value(atShare: 0.99) > Self.ownLagMax || isGeneratorBusy }
    private var isGeneratorBusy: Bool {
        max(busiestThreadShare, generatorCPUShare / Double(max(1, generatorThreads))) > Self.generatorShareMax
    }
    private var isMachineBusy: Bool {
        Double(machineCPUMicroseconds) / 1e6 / seconds >= Self.machineShareMax * Double(processorCount)
    }

    var limit: Limit {
        guard isGeneratorLimited else { return .server }
        return isMachineBusy && !isGeneratorBusy && server != nil ? .machine : .loadTool
    }

    /// The facts that a reader must know before believing the figures.
    var warnings: [String] {
        var warnings: [String] = []
        let lag = decimal(Double(ownLag.value(atShare: 0.99)) / 1e6, places: 1)
        let late = "sent one of 100 requests \(lag) ms late or later"
        let used = decimal(generatorCPUShare, places: 2)
        // A search raises the rate until the load is too much, and reports the bottleneck itself.
        switch isSearch ? .server : limit {
        case .server: break
        case .machine:
            warnings.append(
                "all \(processorCount) processors were busy (server \(decimal(serverCPUShare ?? 0, places: 2)), load "
                    + "tool \(used)), and the load tool, which shares them, \(late): on another machine it would not")
        case .loadTool:
            warnings.append(
                "the load tool was the bottleneck: it \(late) by its own fault, and \(generatorThreads) threads used "
                    + "\(used) CPUs, the busiest \(decimal(busiestThreadShare, places: 2)): use more --threads, or "
                    + "another machine")
        }
        if !isSearch, let share = achievedShare, share < 0.99 {
            warnings.append(
                journeysBegun.map { "\($0) of \(dueCount) journeys that were due began in time" }
                    ?? "\(decimal(achieved, places: 0)) a second were achieved of "
                    + "\(decimal(target ?? 0, places: 0)) asked for")
        }
        if otherCPUShare > 0.1, server != nil {
            warnings.append(
                "other programs used \(decimal(otherCPUShare, places: 2)) CPUs: the figures are theirs, too")
        }
        return warnings
    }

    /// Fails when nothing succeeded, or more answers failed than are allowed: failed requests make figures look fast.
    func check(failuresMaxPercent: Int) throws(BenchError) {
        if isInterrupted { throw BenchError(.interrupted, "interrupted: the figures are partial") }
        if let failure { throw BenchError(.failed, failure) }
        if connectionsLost > 0 { throw BenchError(.failed, "\(connectionsLost) connections were lost") }
        let unsent = notSentCount - (notSent["SKIPPED"] ?? 0)
        if unsent > 0 {
            throw BenchError(.failed, "\(unsent) requests could not be sent: the server is too far behind")
        }
        guard errorCount < answerCount else { throw BenchError(.failed, "nothing went well") }
        if errorCount * 100 > answerCount * failuresMaxPercent {
            throw BenchError(
                .failed,
                "\(errorCount) of \(answerCount) answers failed; --failures-max PERCENT says how many may (now "
                    + "\(failuresMaxPercent))")
        }
        let missed = verdicts.filter { !$0.holds }.map { "\($0.objective) (\($0.measured))" }
        guard missed.isEmpty else { throw BenchError(.objective, "missed: \(missed.joined(separator: ", "))") }
    }
}
