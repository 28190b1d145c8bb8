// The frames that are about the connection or a stream, not a message: PING, GOAWAY, CANCEL, WINDOW; and HELLO.

public import Base
public import Messages

/// A frame that a state machine asks its connection to send.
public enum ControlFrame: Equatable, Sendable {
    /// Eight bytes with a meaning only for the side that sent them first.
    case ping(UInt64, ack: Bool)
    /// Streams above `lastStream` were not processed and are safe to send again.
    case goAway(lastStream: UInt32, CloseReason)
    case cancel(stream: UInt32, WireCode)
    /// More bytes of DATA that the peer may send.
    case window(stream: UInt32, credit: UInt32)

    public func append(to buffer: inout ByteBuffer) {
        switch self {
        case .ping(let opaque, let ack):
            var writer = RawWriter(at: buffer.reserve(FrameHeader.byteCount + 8))
            writer.header(FrameHeader(payloadByteCount: 8, stream: 0, type: .ping, flags: ack ? .ack : []))
            writer.bigEndian(UInt32(truncatingIfNeeded: opaque >> 32))
            writer.bigEndian(UInt32(truncatingIfNeeded: opaque))
            buffer.commit(FrameHeader.byteCount + 8)
        case .goAway(let lastStream, let reason):
            let message = WireGoAway(lastStreamID: lastStream, code: reason.code, text: Text(reason.text))
            buffer.appendControl(message, stream: 0, type: .goAway)
        case .cancel(let stream, let code):
            buffer.appendControl(WireCancel(code: code), stream: stream, type: .cancel)
        case .window(let stream, let credit):
            buffer.appendControl(WireWindow(credit: credit), stream: stream, type: .window)
        }
    }
}

extension ByteBuffer {
    /// HELLO: the client's first frame, or the server's answer to it.
    public mutating func appendHello(_ hello: WireHello) {
        appendControl(hello, stream: 0, type: .hello)
    }

    fileprivate mutating func appendControl(_ message: some Message, stream: UInt32, type: FrameType) {
        let start = beginFrame(stream: stream, type: type)
        message.encode(into: &self)
        let fits = finishFrame(from: start, payloadMax: FrameHeader.payloadByteCountMax)
        precondition(fits, "a control frame larger than any frame")
    }
}

/// Reads a PING's payload; nil unless it is eight bytes.
func pingOpaque(_ payload: UnsafeRawBufferPointer) -> UInt64? {
    guard payload.count == 8 else { return nil }
    return UInt64(bigEndian: payload.loadUnaligned(as: UInt64.self))
}

/// Reads a CANCEL's code. A code this version does not know cancels like any other; nil when malformed.
func cancelCode(_ payload: UnsafeRawBufferPointer, limits: MessageLimits) -> WireCode? {
    do throws(DecodeError) {
        let code = try WireCancel(decoding: payload, limits: limits).code
        return code == .unspecified ? .cancelled : code
    } catch .enumValue {
        return .cancelled
    } catch {
        return nil
    }
}
