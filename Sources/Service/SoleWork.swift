import Synchronization

/// Work that is begun again and again, but never while it still runs. Any thread.
final class SoleWork: Sendable {
    private let isRunning = Atomic(false)

    /// Runs `body`. If an earlier call still runs, does nothing and returns false.
    func run(_ body: @Sendable () async -> Void) async -> Bool {
        let (isFirst, _) = isRunning.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing)
        guard isFirst else { return false }
        await body()
        isRunning.store(false, ordering: .releasing)
        return true
    }
}
