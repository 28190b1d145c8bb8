import Base
public import Crypto

/// How many password hashes were computed, by kind. Each hash takes milliseconds, so a caller can measure how many its
/// request cost: the number must not tell whether an account exists. Any thread.
public final class PasswordHashCounts: Sendable {
    private let counters = PasswordCredential.Kind.allCases.map { (kind: $0, counter: Counter()) }

    public var all: [(kind: PasswordCredential.Kind, count: UInt64)] { counters.map { ($0.kind, $0.counter.value) } }

    func add(_ kind: PasswordCredential.Kind) {
        for entry in counters where entry.kind == kind { entry.counter.add() }
    }
}
