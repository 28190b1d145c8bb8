/// What became of one operation's requests while they were counted.
struct Outcome: Equatable, Sendable {
    /// Nanoseconds from when a request was written until its answer was read; of those that went well.
    var latency = Histogram()
    /// By reason.
    var errors: [String: Int] = [:]

    var okCount: Int { Int(latency.count) }
    var errorCount: Int { errors.values.reduce(0, +) }

    mutating func merge(_ other: Outcome) {
        latency.merge(other.latency)
        errors.merge(other.errors) { $0 + $1 }
    }
}
