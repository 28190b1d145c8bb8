/// The series of a result as comma-separated values (RFC 4180): a line for each slice and operation, also where nothing
/// was answered. The latencies are empty there.
struct SeriesCSV {
    let result: RunResult

    static let columns = [
        "second", "operation", "ok", "errors", "p50_us", "p90_us", "p99_us", "p99_9_us", "max_us", "sent", "in_flight",
        "target_per_second", "server_cpu_share",
    ]

    var text: String {
        var text = Self.columns.joined(separator: ",") + "\r\n"
        let all = result.operations.map(\.name)
        for (number, slice) in result.series.enumerated() {
            for name in Set(all + slice.operations.keys).sorted() {
                let record = slice.operations[name] ?? SliceRecord()
                var cells = [
                    "\((number + 1) * result.sliceSeconds)", Self.quoted(name), "\(record.response.count)",
                    "\(record.errorCount)",
                ]
                cells += RunResult.shares.map {
                    record.response.isEmpty
                        ? "" : decimal(Double(record.response.value(atShare: $0.share)) / 1000, places: 1)
                }
                cells += [
                    "\(slice.sentCount)", "\(slice.inFlight)", slice.target.map { decimal($0, places: 1) } ?? "",
                    slice.serverCPUShare.map { decimal($0, places: 3) } ?? "",
                ]
                text += cells.joined(separator: ",") + "\r\n"
            }
        }
        return text
    }

    private static func quoted(_ text: String) -> String {
        text.contains { ",\"\r\n".contains($0) } ? "\"" + text.replacing("\"", with: "\"\"") + "\"" : text
    }
}
