import Base

/// A result in HdrHistogram's log format, version 1.3, which its plotters and tools read: an interval's histogram a
/// line, tagged with the operation, and with the reason for answers that failed.
///
/// The intervals are the series' slices, in seconds from the beginning; values are nanoseconds, and `Interval_Max` is
/// in milliseconds as the format's default has it. Failures have one line each for the whole run.
struct HistogramLog {
    let result: RunResult

    var text: String {
        let start = decimal(Double(result.startedAt) / 1e6, places: 3)
        var text = """
            #[Logged with postern-bench]
            #[Histogram log format version 1.3]
            #[StartTime: \(start) (seconds since epoch)]
            #[BaseTime: \(start) (seconds since epoch)]
            "StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"

            """
        for (number, slice) in result.series.enumerated() {
            for (name, record) in slice.operations.sorted(by: { $0.key < $1.key }) where !record.response.isEmpty {
                text += line(
                    name, record.response, start: Double(number * result.sliceSeconds),
                    length: Double(result.sliceSeconds))
            }
        }
        for operation in result.operations {
            for (reason, histogram) in operation.record.failures.sorted(by: { $0.key < $1.key }) {
                text += line("\(operation.name):\(reason)", histogram, start: 0, length: result.seconds)
            }
        }
        return text
    }

    private func line(_ tag: String, _ histogram: Histogram, start: Double, length: Double) -> String {
        // A tag has no comma and no white space; a server may have made it up.
        let tag = String(
            tag.unicodeScalars.map { $0.value > 0x20 && $0.value < 0x7F && $0 != "," ? Character($0) : "_" })
        return "Tag=\(tag),\(decimal(start, places: 3)),\(decimal(length, places: 3)),"
            + "\(decimal(Double(histogram.maximum) / 1e6, places: 3)),"
            + "\(Base64.standard.encodeToString(histogram.encodedForLog()))\n"
    }
}
