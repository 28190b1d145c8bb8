import Base

extension RunResult {
    /// Takes over the figures that the threads of a run measured.
    mutating func fill(
        from loops: [any Load], _ mix: Mix, _ plan: RunPlan, _ periods: RunPeriods, _ samples: CPUSamples
    ) {
        seconds = max(1e-3, samples.seconds)
        sliceSeconds = Int(max(1, periods.slice.microseconds / 1_000_000))
        startedAt = Clock.system.now().microseconds - Instant.now.nanoseconds(since: periods.countFrom) / 1000
        isOpenLoop = plan.isOpen
        connectionsLost = loops.reduce(0) { $0 + $1.connectionsLost }
        generatorCPUMicroseconds = samples.generatorMicroseconds
        machineCPUMicroseconds = samples.machineMicroseconds
        server = samples.server
        operations = mix.operations.map { operation in
            var record = OperationRecord()
            for loop in loops { record.merge(loop.recorder.operations[operation.rawValue]) }
            return Operation(name: operation.name, record: record)
        }
        for loop in loops {
            ownLag.merge(loop.recorder.ownLag)
            sentLate += loop.recorder.lateCount
            notSent.merge(loop.recorder.unsent, uniquingKeysWith: +)
        }
        busiestThreadShare = loops.map(\.busyShare).max() ?? 0
        if case .open(let schedule, _, _, _) = plan.loop { target = schedule.average(from: 0, to: seconds) }
        if plan.isOpen, mix.scenario != nil { journeysBegun = loops.reduce(0) { $0 + $1.recorder.begunCount } }
        series = Self.series(loops, mix)
        for index in series.indices {
            if case .open(let schedule, _, _, _) = plan.loop, index * sliceSeconds < plan.seconds {
                let start = Double(index * sliceSeconds)
                series[index].target = schedule.average(from: start, to: start + Double(sliceSeconds))
            }
            if index < samples.serverShares.count { series[index].serverCPUShare = samples.serverShares[index] }
            if index < samples.machineShares.count { series[index].machineCPUShare = samples.machineShares[index] }
        }
    }

    /// The slices of all threads together, without the empty ones after the last answer.
    private static func series(_ loops: [any Load], _ mix: Mix) -> [Slice] {
        var series: [Slice] = []
        for loop in loops {
            for (index, part) in loop.recorder.slices.enumerated() {
                if index == series.count { series.append(Slice()) }
                series[index].sentCount += part.sentCount
                series[index].inFlight += part.inFlight
                for operation in mix.operations {
                    guard let record = part.operations[operation.rawValue] else { continue }
                    let measured = SliceRecord(
                        response: Histogram(encoded: record.response) ?? Histogram(), errors: record.errors)
                    series[index].operations[operation.name, default: SliceRecord()].merge(measured)
                }
            }
        }
        while let last = series.last, last.operations.isEmpty, last.sentCount == 0 { series.removeLast() }
        return series
    }
}
