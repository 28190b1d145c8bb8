import Base
import JSON

/// Reads a result that `run` wrote, whoever gave the file: a value that does not fit is an error that names its place.
struct ResultReader {
    /// Larger than a result of a day.
    static let byteCountMax = 256 << 20
    let path: String

    static func read(_ path: String) throws(BenchError) -> RunResult {
        try ResultReader(path: path).result(TextFile.read(path, byteCountMax: byteCountMax))
    }

    func result(_ bytes: [UInt8]) throws(BenchError) -> RunResult {
        let json: JSONValue
        do { json = try JSONValue(parsing: bytes) } catch {
            throw BenchError(.notReady, "\(path): \(error)")
        }
        guard json["version"]?.integer == RunResult.version else {
            throw BenchError(.notReady, "\(path) is no result of this version of postern-bench")
        }
        var result = RunResult()
        result.configuration = json["configuration"]?.object ?? []
        result.host = json["host"]?.object ?? []
        result.processorCount = max(1, Int(clamping: json["host"]?["processors"]?.integer ?? 1))
        result.startedAt = try count(json, "started_at_microseconds")
        result.serverSoftware = json["server_software"]?.string ?? ""
        result.hashes = (json["hashes"]?.string ?? "unknown", "")
        result.seconds = max(1e-3, try number(json, "seconds"))
        result.isInterrupted = json["interrupted"]?.bool ?? false
        result.failure = json["failure"]?.string
        result.target = json["target_per_second"]?.double
        result.isOpenLoop = result.target != nil
        result.connectionsLost = Int(try count(json, "connections_lost"))
        result.notSent = try counts(json["not_sent_reasons"] ?? [:])
        result.sliceSeconds = max(1, Int(try count(json, "slice_seconds")))
        try readGenerator(json, into: &result)
        result.operations = try (json["operations"]?.array ?? []).map { json throws(BenchError) in
            try operation(json, result.seconds)
        }
        result.series = try (json["series"]?.array ?? []).map { json throws(BenchError) in try slice(json) }
        if let server = json["server"] {
            result.server = RunResult.ServerFigures(
                cpuMicroseconds: try microseconds(server, "cpu_share", result.seconds),
                residentByteCount: Int(try count(server, "resident_bytes")),
                anonymousByteCount: Int(try count(server, "anonymous_bytes")))
        }
        result.machineCPUMicroseconds =
            try microseconds(json, "other_cpu_share", result.seconds) + result.generatorCPUMicroseconds
            + (result.server?.cpuMicroseconds ?? 0)
        result.verdicts = (json["verdicts"]?.array ?? []).compactMap(Objective.Verdict.init(json:))
        return result
    }

    /// The figures of the load tool itself.
    private func readGenerator(_ json: JSONValue, into result: inout RunResult) throws(BenchError) {
        result.sentLate = Int(json["sent_late"]?.integer ?? 0)
        result.ownLag = try histogram(json["own_lag_histogram"])
        result.generatorCPUMicroseconds = try microseconds(json, "generator_cpu_share", result.seconds)
        result.generatorThreads = Int(try count(json, "generator_threads"))
        if json["busiest_thread_cpu_share"] != nil {
            result.busiestThreadShare = try number(json, "busiest_thread_cpu_share")
        }
        if json["journeys_begun"] != nil { result.journeysBegun = Int(try count(json, "journeys_begun")) }
    }

    private func operation(_ json: JSONValue, _ seconds: Double) throws(BenchError) -> RunResult.Operation {
        guard let name = json["name"]?.string else { throw malformed("an operation's name") }
        var record = OperationRecord()
        let rate = try number(json, "requests_per_second")
        guard rate >= 0, rate * seconds < 1e15 else { throw malformed("requests_per_second") }
        record.inTimeCount = Int((rate * seconds).rounded())
        let histograms = json["histograms"] ?? [:]
        record.response = try histogram(histograms["response"])
        record.service = try histogram(histograms["service"])
        record.scheduleLag = try histogram(histograms["schedule_lag"])
        for member in json["failure_histograms"]?.object ?? [] {
            record.failures[member.name.string] = try histogram(member.value)
        }
        return RunResult.Operation(name: name, record: record)
    }

    private func slice(_ json: JSONValue) throws(BenchError) -> RunResult.Slice {
        var slice = RunResult.Slice()
        slice.sentCount = Int(try count(json, "sent"))
        slice.inFlight = Int(try count(json, "in_flight"))
        slice.target = json["target_per_second"]?.double
        slice.serverCPUShare = json["server_cpu_share"]?.double
        slice.machineCPUShare = json["machine_cpu_share"]?.double
        for operation in json["operations"]?.array ?? [] {
            guard let name = operation["name"]?.string else { throw malformed("an operation's name") }
            slice.operations[name] = SliceRecord(
                response: try histogram(operation["histogram"]), errors: try counts(operation["errors"] ?? [:]))
        }
        return slice
    }

    /// Empty when there is none.
    private func histogram(_ json: JSONValue?) throws(BenchError) -> Histogram {
        guard let json else { return Histogram() }
        guard let text = json["hdr"]?.text, let bytes = Base64.standard.decode(text.bytes),
            let maximum = json["max"]?.integer, maximum >= 0, let mean = json["mean"]?.double,
            let histogram = Histogram(encoded: bytes, maximum: UInt64(maximum), mean: mean),
            histogram.count <= 1 << 53
        else { throw malformed("a histogram") }
        return histogram
    }

    private func counts(_ json: JSONValue) throws(BenchError) -> [String: Int] {
        var counts: [String: Int] = [:]
        for member in json.object ?? [] {
            guard let count = member.value.integer, (0...1 << 53).contains(count) else {
                throw malformed(member.name.string)
            }
            counts[member.name.string] = Int(count)
        }
        return counts
    }

    private func number(_ json: JSONValue, _ name: Text) throws(BenchError) -> Double {
        guard let number = json[name]?.double, number.isFinite, abs(number) < 1e15 else { throw malformed(name.string) }
        return number
    }

    private func count(_ json: JSONValue, _ name: Text) throws(BenchError) -> Int64 {
        guard let count = json[name]?.integer, (0...1 << 53).contains(count) else { throw malformed(name.string) }
        return count
    }

    private func microseconds(_ json: JSONValue, _ name: Text, _ seconds: Double) throws(BenchError) -> Int {
        let share = try number(json, name)
        guard share >= 0, share < 1e6, seconds < 1e9 else { throw malformed(name.string) }
        return Int(share * seconds * 1e6)
    }

    private func malformed(_ what: String) -> BenchError {
        BenchError(.notReady, "\(path) is no result of postern-bench: \(what)")
    }
}
