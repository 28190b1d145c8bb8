public import Base

/// A refusal of a stream by the protocol itself, before or beside its handler. The connection stays.
public enum StreamError: Error, Equatable, Sendable, CaseIterable {
    /// Even, zero, or above 2^31 - 1.
    case invalidStreamID
    /// At or below an id that was used before, and not in flight.
    case streamIDNotIncreasing
    /// Flags the type does not have, or that contradict each other or the payload.
    case invalidFlags
    /// DATA for a stream that was never opened.
    case unknownStream
    /// DATA on a unary stream, or after the client closed its side.
    case dataNotExpected
    case windowExceeded
    case frameTooLarge
    case tooManyStreams
    case shuttingDown

    public var failure: Failure {
        switch self {
        case .invalidStreamID:
            Failure(.invalidStreamID, "A client's stream ids are odd and at most 2147483647.")
        case .streamIDNotIncreasing:
            Failure(.invalidStreamID, "A stream id cannot be used again; ids must increase.")
        case .invalidFlags:
            Failure(.invalidFlags, "The frame's flags contradict its type, payload or each other.")
        case .unknownStream:
            Failure(.unknownStream, "DATA needs a REQUEST with the same stream id before it.")
        case .dataNotExpected:
            Failure(
                .dataNotExpected, "The stream takes no DATA from the client, or no more of it.")
        case .windowExceeded:
            Failure(.windowExceeded, "More DATA than the stream's window allows.")
        case .frameTooLarge:
            Failure(.frameTooLarge, "The frame is above the limit of this connection.")
        case .tooManyStreams:
            Failure(.tooManyStreams, "Wait for an answer before the next request.")
        case .shuttingDown:
            Failure(.shuttingDown, "The server stops; send the request on a new connection.")
        }
    }
}
