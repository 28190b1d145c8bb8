public import Messages

/// What a client does because of a frame.
public enum ClientAction: Equatable, Sendable {
    case none
    /// What the server speaks is known: `ClientConnectionState.server` holds its HELLO, or is nil for a stock one.
    case welcomed
    /// The frame's payload is the response's envelope; the stream is over.
    case response(stream: UInt32)
    /// The frame's payload is a message; call `consumed` when its reader took it. `last`: the stream is over, with OK.
    case data(stream: UInt32, last: Bool)
    /// The stream is over, with OK, and without a RESPONSE.
    case ended(stream: UInt32)
    /// The server gave the stream up. `refused`: it was not processed, and is safe to send again.
    case cancelled(stream: UInt32, WireCode)
    /// Whoever waits for room in the stream's window may send again.
    case sendWindowOpened(stream: UInt32)
    /// Send a PING's answer ahead of the queued output.
    case pong(UInt64)
    case pingAcknowledged(UInt64)
    /// The server stops. These streams were not processed and are safe to send again, elsewhere; the others go on.
    /// Close when `streamsInFlight` is 0.
    case goAway(WireCode, unprocessed: [UInt32])
    /// Close; then settle every stream by `connectionLost`.
    case close(CloseReason)
}

/// Why no stream can be opened now.
public enum StreamRefusal: Error, Equatable, Sendable {
    /// As many are in flight as the server takes: wait for one to end.
    case busy
    /// GOAWAY came, the ids are used up, or the connection is closed: use a new connection.
    case connectionSpent
}
