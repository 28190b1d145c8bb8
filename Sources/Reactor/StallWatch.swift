import Base

/// The works that run on threads which may get no processor, and when each should have ended. Pure.
///
/// A thread that only gets spare time stops in the middle of its work while others want all processors. Its work is
/// then given to the first worker as well, and the first answer counts (docs/decisions/0043).
struct StallWatch: Sendable {
    private struct Entry {
        let work: Work
        let stallsAt: Instant
    }

    /// At most one for each spare worker.
    private var entries: [Entry] = []

    /// A work has stalled that takes this much longer than four times what it was expected to.
    static let patience = Duration.milliseconds(40)

    var next: Instant? { entries.map(\.stallsAt).min() }

    mutating func began(_ work: Work, now: Instant) {
        // Proof: at most 100 ms, four times.
        let expected = min(work.cost.time, WorkAdmission.longWork).microseconds
        let stallsAt = now.advanced(by: .microseconds(4 * expected)).advanced(by: Self.patience)
        entries.append(Entry(work: work, stallsAt: stallsAt))
    }

    mutating func ended(_ work: Work) { entries.removeAll { $0.work === work } }

    /// The work that stalled first, which is not watched from now on.
    mutating func takeStalled(now: Instant) -> Work? {
        let stalled = entries.indices.filter { entries[$0].stallsAt <= now }
        guard let first = stalled.min(by: { entries[$0].stallsAt < entries[$1].stallsAt }) else { return nil }
        return entries.remove(at: first).work
    }
}
