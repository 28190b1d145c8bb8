public import Messages

/// The action of a server's connection on a received frame or a finished call. The connection does this and nothing
/// else.
public enum ConnectionAction: Equatable, Sendable {
    case none
    /// HELLO came: append `ConnectionState.hello`, check `ConnectionState.peer`'s authorization if it has one.
    case welcome
    /// The frame's payload is the envelope. Start the work, and call `finished` when it has stopped, however it ends.
    case startRequest(stream: UInt32, StreamKind)
    /// The frame's payload is a message of the stream. Call `consumed` when the handler took it. `last`: the client
    /// sends no more.
    case data(stream: UInt32, last: Bool)
    /// The client sends no more messages on this stream.
    case remoteClosed(stream: UInt32)
    /// Cancel the stream's work; nothing is sent any more, and `finished` is called when it has stopped.
    case cancel(stream: UInt32, WireCode)
    /// Send the failure; there is no work.
    case respondFailure(stream: UInt32, StreamError)
    /// Send the failure and cancel the stream's work; `finished` is called when it has stopped.
    case failStream(stream: UInt32, StreamError)
    /// The stream's window has room again: senders that wait may go on.
    case sendWindowOpened(stream: UInt32)
    case reply(ControlFrame)
    /// Send a PING's answer ahead of the queued output.
    case pong(UInt64)
    /// The peer answered the PING with these bytes.
    case pingAcknowledged(UInt64)
    /// Cancel all work, send the farewell if there is one, flush, and close. Frames that are received from now on are
    /// ignored.
    case close(CloseReason, farewell: ControlFrame?)
}
