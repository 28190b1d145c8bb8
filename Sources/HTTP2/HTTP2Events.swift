/// What an `HTTP2Engine` finds in the bytes of the peer, in their order, and what it asks for to send.
///
/// Everything is called while `HTTP2Engine.receive` or `HTTP2Engine.send` runs, and pointers are valid during the call.
public protocol HTTP2Events: AnyObject {
    /// A block of headers begins: the first of its stream, or trailers.
    func headersBegan(stream: UInt32, isFirst: Bool)
    /// False: nothing more is read, and the session is over.
    func header(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool
    /// `isLast`: the peer sends nothing more on this stream.
    func headersEnded(stream: UInt32, isLast: Bool)
    /// These bytes count against the stream's window until `HTTP2Engine.consume`.
    func data(_ bytes: UnsafeRawBufferPointer, stream: UInt32)
    /// The peer sends nothing more on this stream.
    func remoteEnded(stream: UInt32)
    /// RST_STREAM came.
    func reset(stream: UInt32)
    /// Both sides are done with the stream, or one has reset it. Nothing is called for it any more.
    func closed(stream: UInt32)
    /// The peer takes more bytes: on this stream, or with 0 perhaps on all.
    func windowOpened(stream: UInt32)
    func pingAcknowledged(_ opaque: UInt64)
    /// GOAWAY came.
    func peerLeft()
    /// The peer sent a frame that breaks a rule of RFC 9113; the answer to it is in the output.
    func violated()

    /// Writes the next bytes of a stream's body into `buffer`, as many as there are.
    func nextBytes(stream: UInt32, into buffer: UnsafeMutableRawBufferPointer) -> HTTP2Body
    /// Adds the fields that follow the body of a stream.
    func addTrailers(stream: UInt32, to fields: HTTP2Fields)
}

/// What `HTTP2Events.nextBytes` wrote.
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
