/// The bytes of a connection, both ways and in order, over a descriptor that an event loop watches. A `Socket` carries
/// them as they are; TLS over a socket is another type.
///
/// Nothing blocks. `read` and `write` do as much as can be done at once. One owner, on one loop.
protocol ByteStream {
    /// What the loop watches for `read` and `write`.
    var descriptor: Int32 { get }

    mutating func read(into buffer: UnsafeMutableRawPointer, byteCount: Int) -> ByteStreamResult
    mutating func write(_ bytes: UnsafeRawBufferPointer) -> ByteStreamResult

    /// Says that nothing more will be sent; what the peer still sends can be read.
    mutating func closeForWriting()
    /// Called once; nothing else is called after it.
    mutating func close()
}

enum ByteStreamResult {
    /// This many bytes; 0 from a read is the peer's end.
    case bytes(Int)
    /// Try again when the descriptor is ready.
    case wouldBlock
    /// ECONNRESET, EPIPE, ETIMEDOUT, …: the connection is gone.
    case failed(errno: Int32)
}
