import Base

/// Values of one kind, of which each thread always uses the same one.
///
/// Threads with different values do not wait for each other, and move no count of references from one processor's cache
/// to another's (docs/decisions/0134). If there are more threads than values, some threads share one.
struct PerThread<Value: ~Copyable & Sendable>: Sendable {
    private final class Holder: Sendable {
        let value: Value

        init(_ value: consuming Value) { self.value = value }
    }

    private let holders: [Holder]
    /// The `holders`, to be lent without a count of references.
    private let lent: [Unmanaged<Holder>]

    /// How many values serve that many threads: 16 at most. By default there is a thread for each processor that
    /// the process may use.
    static func count(forThreads threadCount: Int? = nil) -> Int {
        min(max(threadCount ?? MachineShare.processorCount, 1), 16)
    }

    init(count: Int = PerThread.count(), _ make: () -> Value) {
        holders = (0..<count).map { _ in Holder(make()) }
        lent = holders.map { .passUnretained($0) }
    }

    func withOwn<Result>(_ body: (borrowing Value) -> Result) -> Result {
        lent[OSThread.currentNumber % lent.count]._withUnsafeGuaranteedRef { body($0.value) }
    }
}
