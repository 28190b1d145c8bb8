import Base
import Identity
import Synchronization

/// The counts of the outbox as /metrics shows them. Counting reads up to ten thousand rows, and anybody who reaches the
/// HTTP port may ask, so the rows are counted only once in a while.
final class OutboxGauges: Sendable {
    private static let countedEvery = Duration.seconds(15)

    private struct Counted {
        var census = OutboxCensus()
        var until = Instant(nanoseconds: .min)
    }

    private let counted = Mutex(Counted())

    /// The last counts while they are young, or while the store cannot be read; otherwise new counts.
    func census(of outbox: Outbox, now: Instant = .now) -> OutboxCensus {
        counted.withLock { counted in
            guard now >= counted.until else { return counted.census }
            counted.until = now.advanced(by: Self.countedEvery)
            if let census = try? outbox.census() { counted.census = census }
            return counted.census
        }
    }
}
