import Base
import Synchronization

/// Tells whether event loops still turn.
///
/// Each question has every loop run a small job. A loop that has not run the job of an earlier question within
/// `patience` is stuck. Nothing runs between the questions. Any thread.
public final class LoopPulse: Sendable {
    private final class Beat: Sendable {
        let loop: EventLoop
        /// When the loop was asked; nil once it has answered.
        let askedAt = Mutex<Instant?>(nil)

        init(_ loop: EventLoop) { self.loop = loop }

        func isHeard(within patience: Duration, now: Instant) -> Bool {
            let before: Instant? = askedAt.withLock { askedAt in
                defer { askedAt = askedAt ?? now }
                return askedAt
            }
            if let before { return now < before.advanced(by: patience) }
            loop.run { [self] in askedAt.withLock { $0 = nil } }
            return true
        }
    }

    private let beats: [Beat]
    private let patience: Duration

    /// `patience`: much longer than any turn takes.
    public init(_ loops: [EventLoop], patience: Duration = .seconds(10)) {
        self.beats = loops.map(Beat.init)
        self.patience = patience
    }

    /// False from `patience` after the first question that a loop did not answer, until it has.
    public var isBeating: Bool {
        let now = Instant.now
        // All are asked, also behind one that is stuck.
        return beats.map { $0.isHeard(within: patience, now: now) }.allSatisfy { $0 }
    }
}
