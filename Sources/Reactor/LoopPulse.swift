import Base
import Synchronization

/// Tells whether event loops still turn.
///
/// With each question, every loop is given a small job. If a loop has not run the job of an earlier question within
/// `patience`, it is stuck. Nothing runs between the questions. Any thread.
public final class LoopPulse: Sendable {
    private final class Beat: Sendable {
        let loop: EventLoop
        /// When the loop was asked; nil after it has answered.
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

    /// `patience` must be much longer than any turn takes.
    public init(_ loops: [EventLoop], patience: Duration = .seconds(10)) {
        self.beats = loops.map(Beat.init)
        self.patience = patience
    }

    /// False if a loop has not answered a question for `patience`, until it answers.
    public var isBeating: Bool {
        let now = Instant.now
        // All loops are asked, also those after a stuck one.
        return beats.map { $0.isHeard(within: patience, now: now) }.allSatisfy { $0 }
    }
}
