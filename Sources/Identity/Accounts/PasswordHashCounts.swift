import Base
public import Crypto

/// How many password hashes were computed, by kind, and the processor time that they took. Each hash takes
/// milliseconds, so a caller can measure how many its request cost: the number must not tell whether an account exists.
/// Any thread.
public final class PasswordHashCounts: Sendable {
    private let counters = PasswordCredential.Kind.allCases.map { (kind: $0, counter: Counter()) }
    private let processorNanoseconds = Counter()

    public var all: [(kind: PasswordCredential.Kind, count: UInt64)] { counters.map { ($0.kind, $0.counter.value) } }

    /// Of all hashes that have ended, in seconds.
    public var processorSeconds: Double { Double(processorNanoseconds.value) / 1e9 }

    /// Counts the hash, which `compute` computes on the calling thread.
    func count<Value>(_ kind: PasswordCredential.Kind, _ compute: () throws -> Value) rethrows -> Value {
        for entry in counters where entry.kind == kind { entry.counter.add() }
        let start = OSThread.processorNanoseconds
        defer { processorNanoseconds.add(UInt64(clamping: OSThread.processorNanoseconds - start)) }
        return try compute()
    }
}
