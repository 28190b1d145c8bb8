import Base
import Glibc

/// CPU time of the server, of this process and of the whole machine while a run counts, slice by slice.
struct CPUSamples {
    private struct Sample {
        var server: ServerProcess.Usage?
        var generator: Int
        var machine: Int
        var allocations: Int?
        var time: Instant
    }

    private let process: ServerProcess?
    private let periods: RunPeriods
    private let allocations: AllocationCounter?
    private var samples: [Sample] = []

    init(_ process: ServerProcess?, _ periods: RunPeriods, _ allocations: AllocationCounter?) {
        self.allocations = allocations
        self.process = process
        self.periods = periods
    }

    /// Samples at the beginning and at each slice's end, until the run counts no more, or is over before.
    mutating func take(isOver: () -> Bool, onSlice: (Int) -> Void) {
        sleep(until: periods.countFrom, isOver)
        samples.append(sample())
        var end = periods.countFrom
        var number = 0
        while end < periods.countUntil, !isOver() {
            end = min(periods.countUntil, end.advanced(by: periods.slice))
            sleep(until: end, isOver)
            samples.append(sample())
            number += 1
            onSlice(number)
        }
    }

    var seconds: Double { samples.count > 1 ? Self.seconds(samples[0], samples[samples.count - 1]) : 0 }
    var generatorMicroseconds: Int { (samples.last?.generator ?? 0) - (samples.first?.generator ?? 0) }
    var machineMicroseconds: Int { (samples.last?.machine ?? 0) - (samples.first?.machine ?? 0) }

    /// Nil when the server's process is not known, or gone.
    var server: RunResult.ServerFigures? {
        guard let before = samples.first?.server, let after = samples.last?.server else { return nil }
        return RunResult.ServerFigures(
            cpuMicroseconds: max(0, after.cpuMicroseconds - before.cpuMicroseconds),
            residentByteCount: after.residentByteCount, anonymousByteCount: after.anonymousByteCount,
            allocationCount: allocationCount)
    }

    private var allocationCount: Int? {
        guard let before = samples.first?.allocations, let after = samples.last?.allocations else { return nil }
        return max(0, after - before)
    }

    /// CPUs that the server used in each slice.
    var serverShares: [Double?] {
        zip(samples, samples.dropFirst()).map { before, after in
            guard let first = before.server, let second = after.server else { return nil }
            return Double(max(0, second.cpuMicroseconds - first.cpuMicroseconds)) / 1e6
                / max(1e-3, Self.seconds(before, after))
        }
    }

    /// CPUs that everything on this machine used in each slice.
    var machineShares: [Double] {
        zip(samples, samples.dropFirst()).map { before, after in
            Double(max(0, after.machine - before.machine)) / 1e6 / max(1e-3, Self.seconds(before, after))
        }
    }

    private func sample() -> Sample {
        Sample(
            server: try? process?.usage(), generator: Self.ownMicroseconds(),
            machine: (try? ServerProcess.machineCPUMicroseconds()) ?? 0, allocations: allocations?.count, time: .now)
    }

    private static func seconds(_ first: Sample, _ second: Sample) -> Double {
        Double(second.time.nanoseconds(since: first.time)) / 1e9
    }

    /// Returns early when the run is over.
    private func sleep(until instant: Instant, _ isOver: () -> Bool) {
        while !isOver() {
            let left = instant.nanoseconds(since: .now)
            if left <= 0 { return }
            usleep(UInt32(clamping: min(left / 1000 + 1, 50_000)))
        }
    }

    private static func ownMicroseconds() -> Int {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1_000_000
            + Int(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec)
    }
}
