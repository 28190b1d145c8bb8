import Base

/// A page being written.
struct PrometheusPage {
    private(set) var bytes: [UInt8] = []

    mutating func family(_ name: String, _ type: String, _ help: String) {
        line("# HELP \(name) \(help)")
        line("# TYPE \(name) \(type)")
    }

    mutating func value(_ name: String, _ labels: String, _ value: Double) {
        line(labels.isEmpty ? "\(name) \(Self.text(value))" : "\(name){\(labels)} \(Self.text(value))")
    }

    mutating func single(_ name: String, _ type: String, _ help: String, _ value: Double) {
        family(name, type, help)
        self.value(name, "", value)
    }

    /// `bounds` are in microseconds: some of the bounds in which durations are counted.
    mutating func histogram(
        _ name: String, _ labels: String, _ snapshot: DurationHistogram.Snapshot,
        bounds: [Int64] = DurationHistogram.boundsMicroseconds
    ) {
        let prefix = labels.isEmpty ? "" : "\(labels),"
        for (bound, count) in zip(DurationHistogram.boundsMicroseconds, snapshot.cumulativeCounts)
        where bounds.contains(bound) {
            value("\(name)_bucket", "\(prefix)le=\"\(Double(bound) / 1_000_000)\"", Double(count))
        }
        let total = Double(snapshot.cumulativeCounts.last ?? 0)
        value("\(name)_bucket", "\(prefix)le=\"+Inf\"", total)
        value("\(name)_sum", labels, snapshot.sumSeconds)
        value("\(name)_count", labels, total)
    }

    private static func text(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 9e15 ? "\(Int64(value))" : "\(value)"
    }

    private mutating func line(_ text: String) {
        bytes.append(contentsOf: text.utf8)
        bytes.append(UInt8(ascii: "\n"))
    }
}
