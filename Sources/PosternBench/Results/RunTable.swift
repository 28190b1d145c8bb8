/// A result as a person reads it in a terminal.
struct RunTable {
    let result: RunResult

    var text: String {
        var text = Self.row("operation", ["per second", "errors", "p50 µs", "p90 µs", "p99 µs", "p99.9 µs", "max µs"])
        for operation in result.operations {
            let record = operation.record
            text += row(operation.name, record.response, result.rate(of: operation), errors: record.errorCount)
            if !record.service.isEmpty {
                text += row("  service", record.service)
                text += row("  lag", record.scheduleLag)
            }
        }
        for operation in result.operations {
            for (reason, count) in operation.record.errors.sorted(by: { $0.key < $1.key }) {
                text += "  \(operation.name): \(reason) \(count)\n"
            }
        }
        return text + loop + cost + (result.hashes.description.isEmpty ? "" : result.hashes.description + "\n")
            + result.verdicts.map { "\($0.holds ? "holds" : "MISSED"): \($0.objective), measured \($0.measured)\n" }
            .joined() + result.warnings.map { "WARNING: \($0)\n" }.joined()
    }

    private var loop: String {
        var text = result.connectionsLost > 0 ? "connections lost: \(result.connectionsLost)\n" : ""
        guard result.isOpenLoop else { return text }
        let lag = decimal(Double(result.ownLag.value(atShare: 0.99)) / 1000, places: 0)
        text += "open loop: \(decimal(result.achieved, places: 0))/s "
        text +=
            result.journeysBegun.map { "in \($0) of \(result.dueCount) journeys that were due, " }
            ?? "of \(decimal(result.target ?? 0, places: 0))/s, "
        text += "\(result.sentLate) sent late (own delay p99 \(lag) µs), \(result.notSentCount) not sent\n"
        for (reason, count) in result.notSent.sorted(by: { $0.key < $1.key }) { text += "  \(reason) \(count)\n" }
        return text
    }

    private var cost: String {
        var text = ""
        if let server = result.server {
            text += "server: \(decimal(result.cpuMicrosecondsPerRequest ?? 0, places: 2)) µs of CPU a request, "
            text += "\(decimal(result.serverCPUShare ?? 0, places: 2)) CPUs, "
            text += "RSS \(server.residentByteCount / 1024) KiB, RssAnon \(server.anonymousByteCount / 1024) KiB\n"
        }
        let own = result.loadMicrosecondsPerRequest
        return text
            + "load: \(decimal(result.generatorCPUShare, places: 2)) CPUs, \(decimal(own, places: 2)) µs a request; "
            + "everything else: \(decimal(result.otherCPUShare, places: 2)) CPUs\n"
    }

    private func row(_ name: String, _ histogram: Histogram, _ rate: Double? = nil, errors: Int? = nil) -> String {
        let latencies = RunResult.shares.map {
            decimal(Double(histogram.value(atShare: $0.share)) / 1000, places: 0)
        }
        return Self.row(
            name, [rate.map { decimal($0, places: 0) } ?? "", errors.map(String.init) ?? ""] + latencies)
    }

    private static func row(_ name: String, _ cells: [String]) -> String {
        cells.reduce(padded(name, to: 14)) { $0 + padded($1, to: -11) } + "\n"
    }
}
