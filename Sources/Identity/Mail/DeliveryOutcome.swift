import Base

/// The outcome of an attempt to deliver a message.
enum DeliveryOutcome: Sendable, Equatable {
    case sent
    case failed(Text)
    case refused(Text)
    /// The tenant's messages are no longer delivered: the message stays in the outbox to be read.
    case held
}
