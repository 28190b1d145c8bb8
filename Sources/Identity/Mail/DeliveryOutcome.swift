import Base

/// The outcome of an attempt to deliver a message.
enum DeliveryOutcome: Sendable, Equatable {
    case sent
    case failed(Text)
    /// Nobody was asked to take the message, for a reason on our side: it is tried again and has lost no attempt.
    case postponed(Text)
    case refused(Text)
    /// The tenant's messages are no longer delivered: the message stays in the outbox to be read.
    case held

    /// What the clients refuse themselves, because this server or the tenant has too much on its way.
    static let overloaded = DeliveryOutcome.postponed("too much of this tenant is on its way")

    /// Whether somebody was asked to take the message.
    var isAttempt: Bool {
        switch self {
        case .sent, .failed, .refused: true
        case .postponed, .held: false
        }
    }
}
