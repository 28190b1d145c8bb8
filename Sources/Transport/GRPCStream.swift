import Base
import Wire

/// One HTTP/2 stream that carries a call: its state, and the bytes that wait in either direction.
///
/// A connection reuses the objects and their memory, so that a call allocates nothing here.
final class GRPCStream {
    private(set) var id: UInt32 = 0
    var state = GRPCStreamState()
    var kind = StreamKind.unary
    var headers = GRPCRequestHeaders()
    /// When the request's headers came.
    private(set) var beganAt = Instant.now

    /// The client's input that nobody has taken yet: messages with their prefixes.
    var input = ByteBuffer()
    /// The bytes of the client that are not given back to its window.
    var uncredited = 0
    /// The time since which `input` waits; it has no meaning while `input` is empty.
    var inputSince = Instant.now
    /// The byte counts of the messages that were handed out and that their handler has not taken.
    var deliveredCosts = EventQueue<Int>()
    /// The credential was shown to learn whether it allows a larger message.
    var hasPresented = false
    /// The stream stands in the queue to hand out messages.
    var isDelivering = false
    /// The stream stands in the queue to be begun.
    var isQueued = false
    /// The stream stands in the queue of those that have a large message.
    var isLargeWaiting = false
    /// The cancellation of the call was already counted.
    var hasNotedCancel = false

    /// The output that the client's window holds back.
    var output = ByteBuffer()
    /// The answer is complete but not completely sent.
    var isHeld = false
    /// The answer is a page: no trailers follow it.
    var isPage = false
    /// The status of a failed call.
    var failure: GRPCStatus?

    func begin(id: UInt32, at now: Instant) {
        self.id = id
        beganAt = now
        state = GRPCStreamState()
        kind = .unary
        headers.clear()
        Self.clear(&input)
        Self.clear(&output)
        (uncredited, hasPresented, isDelivering, isHeld, isPage, failure) = (0, false, false, false, false, nil)
        (isQueued, isLargeWaiting, hasNotedCancel) = (false, false, false)
        deliveredCosts = EventQueue()
    }

    private static func clear(_ buffer: inout ByteBuffer) {
        buffer.consume(buffer.readableByteCount)
        buffer.releaseIfIdle(above: 4 * 1024)
    }

    /// The stream has ended. Its request may still be read in this turn.
    func end() { id = 0 }

    /// Gives back memory that another stream would hardly need.
    func release() {
        headers.clear()
        Self.clear(&input)
        Self.clear(&output)
        deliveredCosts = EventQueue()
    }

    /// The memory of the two buffers. An object that was just made, or has released them, has none.
    var bufferCapacity: Int { input.capacity + output.capacity }

    /// Gives back the memory of the buffers, which are empty.
    func releaseBuffers() {
        input.releaseIfIdle()
        output.releaseIfIdle()
    }

    /// The declared length of the message at the front of `input`; nil while it is not known.
    var declaredByteCount: Int? { GRPCMessage.declaredByteCount(input.readable) }

    /// Whether the beginning of a message came on an open stream, and only the client delays the rest.
    var waitsForRestOfMessage: Bool {
        kind == .remoteOpen && !input.isEmpty && !isDelivering && !isLargeWaiting && deliveredCosts.isEmpty
            && state.work == .running && state.request == .messages && state.wantsAnswer
    }

    /// The remaining timeout of the call, in the form of native requests: 0 if the client gave none. Nil if it has
    /// passed.
    func timeoutLeft(now: Instant) -> Int64? {
        let timeout = headers.timeoutNanoseconds
        guard timeout > 0 else { return 0 }
        let left = timeout - max(0, now.nanoseconds(since: beganAt))
        return left > 0 ? left : nil
    }
}

/// A message on an HTTP/2 stream: a byte that says whether it is compressed, four of its length, and its content.
enum GRPCMessage {
    static let prefixByteCount = 5

    static func declaredByteCount(_ bytes: UnsafeRawBufferPointer) -> Int? {
        guard bytes.count >= prefixByteCount else { return nil }
        return Int(UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 1, as: UInt32.self)))
    }
}
