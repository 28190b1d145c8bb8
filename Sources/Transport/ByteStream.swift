import TLS

/// The bytes of a connection, both ways and in order, over a descriptor that an event loop watches. A `Socket` carries
/// them as they are; a `PortStream` also carries TLS.
///
/// Nothing blocks. `read` and `write` do as much as can be done at once. One owner, on one loop.
protocol ByteStream {
    /// What the loop watches for `read` and `write`.
    var descriptor: Int32 { get }
    /// Nothing is written before the stream is open; reading opens it.
    var stage: ByteStreamStage { get }
    /// Whether there is something to read that the descriptor does not announce any more.
    var hasPendingInput: Bool { get }
    /// Whether the bytes are encrypted on their way, once the stream is open.
    var isEncrypted: Bool { get }
    /// Whom the peer's certificate names, once the stream is open.
    var peerCertificate: PeerCertificate? { get }

    mutating func read(into buffer: UnsafeMutableRawPointer, byteCount: Int) -> ByteStreamResult
    mutating func write(_ bytes: UnsafeRawBufferPointer) -> ByteStreamResult

    /// Says that nothing more will be sent; what the peer still sends can be read.
    mutating func closeForWriting()
    /// Called once; nothing else is called after it.
    mutating func close()
}

extension ByteStream {
    var stage: ByteStreamStage { .open }
    var hasPendingInput: Bool { false }
    var isEncrypted: Bool { false }
    var peerCertificate: PeerCertificate? { nil }
}

enum ByteStreamStage {
    /// The peer has sent nothing yet that tells what it speaks. Next: `handshake`, `open`.
    case undecided
    /// Next: `open`.
    case handshake
    case open
}

enum ByteStreamResult {
    /// This many bytes; 0 from a read is the peer's end.
    case bytes(Int)
    /// Try again when the descriptor is ready.
    case wouldBlock
    /// From a read: the stream has to send something first. Read again when the descriptor takes bytes.
    case wouldBlockWriting
    /// The stream refused its peer, and told it why. What the peer still sends is read and thrown away.
    case refused
    /// ECONNRESET, EPIPE, ETIMEDOUT, …: the connection is gone.
    case failed(errno: Int32)
}
