import Base

/// What became of an attempt to deliver a message.
enum DeliveryOutcome: Sendable, Equatable {
    case sent
    case failed(Text)
    case refused(Text)
    /// The tenant delivers nothing by itself any more: the message stays to be read.
    case held
}
