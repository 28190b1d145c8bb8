public import Base

/// How many attempts to deliver mails and SMS there were, by their outcome, and how many messages were given up. Any
/// thread.
public final class DeliveryCounts: Sendable {
    public enum Kind: String, CaseIterable, Sendable { case mail, sms }

    public struct Outcomes: Sendable {
        public let sent = Counter()
        /// The message is tried again, unless this was its last attempt.
        public let failed = Counter()
        /// The other server refused the message for good.
        public let refused = Counter()
    }

    /// Messages that became dead, for whatever reason.
    public let givenUp = Counter()
    private let mails = Outcomes()
    private let sms = Outcomes()

    public func outcomes(of kind: Kind) -> Outcomes {
        switch kind {
        case .mail: mails
        case .sms: sms
        }
    }

    /// Counts an attempt. An outcome without an attempt counts as nothing.
    func count(_ outcome: DeliveryOutcome, of kind: Kind) {
        let outcomes = outcomes(of: kind)
        switch outcome {
        case .sent: outcomes.sent.add()
        case .failed, .unanswered: outcomes.failed.add()
        case .refused: outcomes.refused.add()
        case .postponed, .held: break
        }
    }
}

extension Mailer {
    public nonisolated var counts: DeliveryCounts { delivery.counts }
}
