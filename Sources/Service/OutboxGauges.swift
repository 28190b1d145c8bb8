import Base
import Identity
import Synchronization

/// The counts of the outbox as /metrics shows them. Counting reads a mebibyte of rows, and anybody who reaches the HTTP
/// port may ask, so the rows are counted only once in a while.
final class OutboxGauges: Sendable {
    private static let countedEvery = Duration.seconds(15)

    private struct Counted {
        var census = OutboxCensus()
        var pass = OutboxPass()
        var until = Instant(nanoseconds: .min)
    }

    private let counted = Mutex(Counted())

    /// The last counts while they are young, while another thread counts, or while the store cannot be read; otherwise
    /// new counts.
    func census(of outbox: Outbox, now: Instant = .now) -> OutboxCensus {
        let (last, begun) = counted.withLock { counted -> (OutboxCensus, OutboxPass?) in
            guard now >= counted.until else { return (counted.census, nil) }
            counted.until = now.advanced(by: Self.countedEvery)
            return (counted.census, counted.pass)
        }
        // Not under the lock, which the next scraper would wait for on its event loop.
        guard var pass = begun, let census = try? outbox.census(&pass) else { return last }
        let reached = pass
        counted.withLock { counted in
            counted.census = census
            counted.pass = reached
        }
        return census
    }
}
