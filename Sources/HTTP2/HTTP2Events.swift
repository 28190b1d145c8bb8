/// The events that an `HTTP2Engine` finds in the peer's bytes, in order, and its requests for bytes to send.
///
/// All functions are called while `HTTP2Engine.receive` or `HTTP2Engine.send` runs. Pointers are valid during the call.
public protocol HTTP2Events: AnyObject {
    /// A block of headers begins: the first of its stream, or trailers.
    func headersBegan(stream: UInt32, isFirst: Bool)
    /// Returns false to read nothing more and end the session.
    func header(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool
    /// `isLast`: the peer sends nothing more on this stream.
    func headersEnded(stream: UInt32, isLast: Bool)
    /// These bytes count against the stream's window until `HTTP2Engine.consume`.
    func data(_ bytes: UnsafeRawBufferPointer, stream: UInt32)
    /// The peer sends nothing more on this stream.
    func remoteEnded(stream: UInt32)
    /// RST_STREAM came.
    func reset(stream: UInt32)
    /// Both sides are done with the stream, or one has reset it. No event comes for the stream any more.
    func closed(stream: UInt32)
    /// The peer takes more bytes: on this stream, or with 0 perhaps on all.
    func windowOpened(stream: UInt32)
    func pingAcknowledged(_ opaque: UInt64)
    /// GOAWAY came.
    func peerLeft()
    /// The peer sent a frame that breaks a rule of RFC 9113; the answer to it is in the output.
    func violated()
    /// The peer began a stream above the announced maximum. nghttp2 refuses it; the events of its headers do not come.
    func refused()

    /// Writes the next bytes of a stream's body into `buffer`, as many as there are.
    func nextBytes(stream: UInt32, into buffer: UnsafeMutableRawBufferPointer) -> HTTP2Body
    /// Adds the fields that follow the body of a stream.
    func addTrailers(stream: UInt32, to fields: HTTP2Fields)
}

/// The result of `HTTP2Events.nextBytes`.
public enum HTTP2Body: Equatable, Sendable {
    /// More will follow.
    case bytes(Int)
    /// There is nothing now; `HTTP2Engine.resume` tells when there is.
    case none
    /// The last bytes; they end the stream.
    case last(Int)
    /// The last bytes; trailers follow.
    case lastBeforeTrailers(Int)
}
