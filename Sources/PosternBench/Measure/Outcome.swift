/// The outcome of some requests: the latencies of those that succeeded, and the reasons why others failed.
struct Outcome: Equatable, Sendable {
    /// Nanoseconds.
    var latency = Histogram()
    /// The failures, by reason.
    var errors: [String: Int] = [:]

    var okCount: Int { Int(latency.count) }
    var errorCount: Int { errors.values.reduce(0, +) }

    mutating func merge(_ other: Outcome) {
        latency.merge(other.latency)
        errors.merge(other.errors) { $0 + $1 }
    }
}
