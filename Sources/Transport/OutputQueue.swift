import Base

/// The output of a connection: frames in their order, except the frames that go ahead of those that the peer does not
/// take.
struct OutputQueue: ~Copyable {
    private var front = ByteBuffer()
    /// The frames that came while the stream was full. They follow `front`, so that a PING's answer can go between.
    private var backlog = ByteBuffer()
    /// The stream takes no more for now.
    var isBlocked = false

    var isEmpty: Bool { front.isEmpty && backlog.isEmpty }
    var byteCount: Int { front.readableByteCount + backlog.readableByteCount }
    /// The memory that the queue holds.
    var capacity: Int { front.capacity + backlog.capacity }

    /// Lets `write` append whole frames after all others.
    mutating func append<Result>(_ write: (inout ByteBuffer) throws -> Result) rethrows -> Result {
        if isBlocked { try write(&backlog) } else { try write(&front) }
    }

    /// Lets `write` append a whole frame ahead of all frames that came while the stream was full.
    mutating func appendAhead(_ write: (inout ByteBuffer) -> Void) { write(&front) }

    /// The bytes that go next, valid until the queue is changed; none when there is nothing to send.
    mutating func next() -> UnsafeRawBufferPointer {
        if front.isEmpty { swap(&front, &backlog) }
        return front.readable
    }

    /// Removes the first `byteCount` bytes of `next`, which were sent.
    mutating func consume(_ byteCount: Int) { front.consume(byteCount) }

    /// Gives memory back that is not in use.
    mutating func releaseIfIdle(above byteCount: Int = 0) {
        front.releaseIfIdle(above: byteCount)
        backlog.releaseIfIdle()
    }
}
