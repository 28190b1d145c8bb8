import Base
import Store

/// The outcome of an attempt to deliver a message.
enum DeliveryOutcome: Sendable, Equatable {
    case sent
    case failed(Text)
    /// A server got the whole message and has not said whether it takes it. It may deliver the message, so there are
    /// few further attempts, far apart.
    case unanswered(Text)
    /// Nobody was asked to take the message, for a reason on our side: it is tried again and has lost no attempt.
    case postponed(Text)
    case refused(Text)
    /// The tenant's messages are no longer delivered: the message stays in the outbox to be read.
    case held

    /// The outcome if a client itself refuses a message, because this server or the tenant has too many on their way.
    static let overloaded = DeliveryOutcome.postponed("too much of this tenant is on its way")

    /// The outcome if this server stops before another one has the whole message.
    static let stopping = DeliveryOutcome.postponed("this server is stopping")

    /// The outcome if the message's tenant was suspended after the message was taken from the queue.
    static let suspended = DeliveryOutcome.postponed("the tenant is suspended")

    /// The store does not let a message or its settings be read now: too many read at once, or it is being closed. That
    /// says nothing about the message.
    static let unreadable = DeliveryOutcome.postponed("the store cannot be read")

    /// The outcome when a tenant's settings cannot be read. If their record is damaged, an admin has to set them anew,
    /// and the message waits for that as for a server that is down.
    static func settings(_ damaged: Text, _ error: any Error) -> DeliveryOutcome {
        if case StoreError.corrupt = error { .failed(damaged) } else { .unreadable }
    }

    /// Whether somebody was asked to take the message.
    var isAttempt: Bool {
        switch self {
        case .sent, .failed, .unanswered, .refused: true
        case .postponed, .held: false
        }
    }
}
