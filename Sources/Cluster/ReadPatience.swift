import Base

/// How long a node waits for an answer to a question that changes nothing, while nothing at all comes over the
/// connection. After that, it gives up the connection and asks over a new one.
///
/// A connection may fall silent alone, and each write of the node would wait behind its question for `answerTimeout`.
/// The engine may also be slow. So the node waits twice as long as the last question took, answered or not, and a node
/// of a slow engine keeps its connection from the second or third question on.
struct ReadPatience {
    private(set) var silenceMax: Duration
    private let limits: JournalLimits

    init(_ limits: JournalLimits) {
        (self.limits, silenceMax) = (limits, min(limits.readSilenceMin, limits.answerTimeout))
    }

    /// The last question had its answer, or was given up, after this time.
    mutating func ended(after duration: Duration) {
        silenceMax = min(max(duration * 2, limits.readSilenceMin), limits.answerTimeout)
    }
}
