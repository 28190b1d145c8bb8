import Glibc

/// The reason why a command ended without its figures: the message on stderr, and the exit status.
struct BenchError: Error, CustomStringConvertible {
    enum Kind: Int32 {
        /// No connection, no key, or seeded data is missing.
        case notReady = 2
        /// The run itself went wrong.
        case failed = 3
        /// A threshold does not hold.
        case regression = 98
        /// An objective of `--slo` was missed.
        case objective = 99
        case interrupted = 130
    }

    let kind: Kind
    let description: String

    init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }

    /// A system call that failed: reads `errno`.
    static func system(_ kind: Kind, _ what: String) -> BenchError {
        BenchError(kind, "\(what): \(String(cString: strerror(errno)))")
    }
}
