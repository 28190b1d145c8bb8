import TLS

/// The bytes of a connection, both ways and in order, over a descriptor that an event loop watches. A `Socket` carries
/// them as they are; a `PortStream` also carries TLS.
///
/// No call blocks: `read` and `write` do as much as they can at once. A stream has one owner, on one loop.
protocol ByteStream {
    /// The descriptor that the loop watches for `read` and `write`.
    var descriptor: Int32 { get }
    /// Reading opens the stream. Nothing is written before it is open.
    var stage: ByteStreamStage { get }
    /// Whether the stream holds input that the descriptor does not announce any more.
    var hasPendingInput: Bool { get }
    /// The memory that the stream holds for input that was not read.
    var heldByteCount: Int { get }
    /// Whether the bytes are encrypted on their way, once the stream is open.
    var isEncrypted: Bool { get }
    /// The identity in the peer's certificate, once the stream is open.
    var peerCertificate: PeerCertificate? { get }

    mutating func read(into buffer: UnsafeMutableRawPointer, byteCount: Int) -> ByteStreamResult
    mutating func write(_ bytes: UnsafeRawBufferPointer) -> ByteStreamResult

    /// Tells the peer that nothing more will be sent. Input of the peer can still be read.
    mutating func closeForWriting()
    /// Called once, as the last call.
    mutating func close()
}

extension ByteStream {
    var stage: ByteStreamStage { .open }
    var hasPendingInput: Bool { false }
    var heldByteCount: Int { 0 }
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
    /// This many bytes. From a read, 0 means that the peer has ended its side.
    case bytes(Int)
    /// Try again when the descriptor is ready.
    case wouldBlock
    /// From a read: the stream has to send something first. Read again when the descriptor takes bytes.
    case wouldBlockWriting
    /// The stream refused its peer, and told it why if it speaks TLS. Further input is read and thrown away.
    case refused
    /// ECONNRESET, EPIPE, ETIMEDOUT, …: the connection is gone.
    case failed(errno: Int32)
}
