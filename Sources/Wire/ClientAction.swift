public import Messages

/// The action of a client on a received frame.
public enum ClientAction: Equatable, Sendable {
    case none
    /// The server's protocol is known. `ClientConnectionState.server` holds the server's HELLO, or nil for a stock
    /// ttrpc server.
    case welcomed
    /// The frame's payload is the response's envelope. The stream is over.
    case response(stream: UInt32)
    /// The frame's payload is a message. Call `consumed` when the reader took it. `last`: the stream is over, with OK.
    case data(stream: UInt32, last: Bool)
    /// The stream is over, with OK, and without a RESPONSE.
    case ended(stream: UInt32)
    /// The server cancelled the stream. With the code `refused`, it was not processed and is safe to send again.
    case cancelled(stream: UInt32, WireCode)
    /// The stream's window has room again: senders that wait may go on.
    case sendWindowOpened(stream: UInt32)
    /// Send a PING's answer ahead of the queued output.
    case pong(UInt64)
    case pingAcknowledged(UInt64)
    /// The server stops. `unprocessed` streams are safe to send again on another connection; the other streams go on.
    /// Close when `streamsInFlight` is 0.
    case goAway(WireCode, unprocessed: [UInt32])
    /// Close; then settle every stream by `connectionLost`.
    case close(CloseReason)
}

/// The reason why no stream can be opened now.
public enum StreamRefusal: Error, Equatable, Sendable {
    /// The server's limit of streams is reached. Wait for a stream to end.
    case busy
    /// GOAWAY came, the ids are used up, or the connection is closed: use a new connection.
    case connectionSpent
}
