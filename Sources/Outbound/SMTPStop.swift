import Base
import Synchronization

/// Tells the mails that are being sent that this server stops. Any thread.
final class SMTPStop: Sendable {
    private let answersUntil = Mutex<Instant?>(nil)

    var hasBegun: Bool { answersUntil.withLock { $0 != nil } }

    /// Only the first call counts.
    func begin(awaitingAnswersUntil end: Instant) { answersUntil.withLock { $0 = $0 ?? end } }

    /// Whether an exchange has to end that has no answer to its mail yet. If the other server has the whole mail, only
    /// its answer tells whether the mail has to be sent again.
    func mustEnd(isWhole: Bool, now: Instant) -> Bool {
        guard let end = answersUntil.withLock({ $0 }) else { return false }
        return !isWhole || now >= end
    }
}
