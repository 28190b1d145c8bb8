import Base

/// The time in which a connection was not read from: because it waited for its turn, because too much of it waited, or
/// because memory was short. A client is not blamed for that time. A value.
struct ReadingPauses {
    /// Since when the connection is not read from. Nil while it is.
    private var since: Instant?
    /// All pauses that are over, in nanoseconds.
    private var total: Int64 = 0
    /// The frame that has begun to come, named by its beginning, and `total` at that time.
    private var frame: (begun: Instant, total: Int64)?

    var isPaused: Bool { since != nil }

    /// The connection is not read from now; does nothing in a pause.
    mutating func begin(at now: Instant) {
        if since == nil { since = now }
    }

    /// The connection is read from again; does nothing between pauses.
    mutating func end(at now: Instant) {
        guard let since else { return }
        total += max(0, now.nanoseconds(since: since))
        self.since = nil
    }

    /// To be called after each decoding, with the time since which a part of a frame has waited for its rest.
    mutating func note(frameBegun begun: Instant?) {
        guard begun != frame?.begun else { return }
        frame = begun.map { ($0, total) }
    }

    /// The end of a limit that began at `begun`, before any pause. Never while a pause lasts.
    func deadline(of limit: Duration, begun: Instant) -> Instant {
        isPaused ? .distantFuture : begun.advanced(by: limit).advanced(byNanoseconds: total)
    }

    /// The end of a limit for the frame that has begun to come. Never while a pause lasts, or between frames.
    func deadline(ofFrame limit: Duration) -> Instant {
        guard let frame, !isPaused else { return .distantFuture }
        return frame.begun.advanced(by: limit).advanced(byNanoseconds: total - frame.total)
    }
}
