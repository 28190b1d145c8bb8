import Base
import JSON

extension RunResult {
    /// Runs of one load begin within hours of each other.
    private static let slicesMax: Int64 = 3_600

    /// Several generators' results of one run as one: counts add up, and so do rates. Slices are laid over each other
    /// by the time their run began.
    static func merged(_ results: [RunResult]) throws(BenchError) -> RunResult {
        guard var merged = results.first else { throw BenchError(.notReady, "nothing to merge") }
        let begin = results.map(\.startedAt).min() ?? merged.startedAt
        guard results.allSatisfy({ $0.sliceSeconds == merged.sliceSeconds && $0.isOpenLoop == merged.isOpenLoop })
        else {
            throw BenchError(.notReady, "the results are of different kinds of runs: they cannot be merged")
        }
        let sliceMicroseconds = Int64(merged.sliceSeconds) * 1_000_000
        merged.series = []
        for result in results {
            let shift = (result.startedAt - begin + sliceMicroseconds / 2) / sliceMicroseconds
            guard shift <= 2 * slicesMax else {
                throw BenchError(
                    .notReady, "the results are of runs that did not go on together: they cannot be merged")
            }
            merged.lay(result.series, at: Int(shift))
        }
        for result in results.dropFirst() {
            let (machine, processors) = (merged.machineCPUMicroseconds, merged.processorCount)
            let isOneMachine = merged.server != nil && result.server != nil
            merged.add(result)
            guard isOneMachine else { continue }
            // Load tools that know the server's process run on its machine, which counts once.
            merged.machineCPUMicroseconds = max(machine, result.machineCPUMicroseconds)
            merged.processorCount = max(processors, result.processorCount)
        }
        merged.startedAt = begin
        return merged
    }

    /// Runs that followed one another as one result: the series shows them in turn.
    static func inTurn(_ results: [RunResult]) throws(BenchError) -> RunResult {
        guard var all = results.first else { throw BenchError(.interrupted, "interrupted before the first step") }
        let seconds = results.reduce(0) { $0 + $1.seconds }
        let asked = results.reduce(0) { $0 + ($1.target ?? 0) * $1.seconds }
        let (threads, processors) = (all.generatorThreads, all.processorCount)
        for result in results.dropFirst() {
            all.lay(result.series, at: all.series.count)
            all.add(result)
            if let cpu = result.server?.cpuMicroseconds { all.server?.cpuMicroseconds += cpu }
        }
        all.seconds = seconds
        all.target = all.target == nil ? nil : asked / seconds
        (all.generatorThreads, all.processorCount) = (threads, processors)
        all.verdicts = []
        return all
    }

    private mutating func lay(_ slices: [Slice], at shift: Int) {
        for (number, slice) in slices.enumerated() {
            while series.count <= number + shift { series.append(Slice()) }
            var sum = series[number + shift]
            sum.sentCount += slice.sentCount
            sum.inFlight += slice.inFlight
            if let target = slice.target { sum.target = (sum.target ?? 0) + target }
            // The server is the same for all of them.
            sum.serverCPUShare = sum.serverCPUShare ?? slice.serverCPUShare
            sum.machineCPUShare = sum.machineCPUShare ?? slice.machineCPUShare
            for (name, record) in slice.operations { sum.operations[name, default: SliceRecord()].merge(record) }
            series[number + shift] = sum
        }
    }

    private mutating func add(_ other: RunResult) {
        for operation in other.operations {
            if let index = operations.firstIndex(where: { $0.name == operation.name }) {
                operations[index].record.merge(operation.record)
            } else {
                operations.append(operation)
            }
        }
        seconds = max(seconds, other.seconds)
        connectionsLost += other.connectionsLost
        if let target = other.target { self.target = (self.target ?? 0) + target }
        notSent.merge(other.notSent, uniquingKeysWith: +)
        ownLag.merge(other.ownLag)
        sentLate += other.sentLate
        generatorCPUMicroseconds += other.generatorCPUMicroseconds
        machineCPUMicroseconds += other.machineCPUMicroseconds
        generatorThreads += other.generatorThreads
        busiestThreadShare = max(busiestThreadShare, other.busiestThreadShare)
        if let begun = other.journeysBegun { journeysBegun = (journeysBegun ?? 0) + begun }
        processorCount += other.processorCount
        server = server ?? other.server
        isInterrupted = isInterrupted || other.isInterrupted
        failure = failure ?? other.failure
        verdicts += other.verdicts
    }
}
