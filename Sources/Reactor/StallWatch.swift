import Base

/// The works that run on threads which may get no processor, and when each should have ended. It is pure.
///
/// A thread that only gets spare time stops in the middle of its work while other threads want all processors. Then its
/// work is also given to the first worker, and the first answer counts (docs/decisions/0043).
struct StallWatch: Sendable {
    private struct Entry {
        let work: Work
        let stallsAt: Instant
    }

    /// At most one for each spare worker.
    private var entries: [Entry] = []

    var next: Instant? { entries.map(\.stallsAt).min() }

    mutating func began(_ work: Work, now: Instant) {
        entries.append(Entry(work: work, stallsAt: now.advanced(by: ProcessorDemand.timeMax(of: work))))
    }

    mutating func ended(_ work: Work) { entries.removeAll { $0.work === work } }

    /// The work that stalled first. It is not watched from now on.
    mutating func takeStalled(now: Instant) -> Work? {
        let stalled = entries.indices.filter { entries[$0].stallsAt <= now }
        guard let first = stalled.min(by: { entries[$0].stallsAt < entries[$1].stallsAt }) else { return nil }
        return entries.remove(at: first).work
    }
}
