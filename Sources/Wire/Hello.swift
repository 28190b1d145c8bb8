// The meaning of absent numbers in HELLO, and the numbers that are refused.

import Base
import Messages

extension WireHello {
    /// The limit of ttrpc.
    static let payloadMaxDefault = 4 * 1024 * 1024
    /// The smallest limit that every failure fits into.
    static let payloadMaxLeast = 16 * 1024

    /// Nil when malformed, or with numbers that cannot be served.
    static func validated(_ payload: UnsafeRawBufferPointer, limits: Limits) -> WireHello? {
        guard let hello = try? WireHello(decoding: payload, limits: limits.messages), hello.protocolVersion >= 1,
            hello.frameBytesMax == 0 || hello.frameBytesMax >= payloadMaxLeast,
            hello.initialWindow <= StreamWindow.creditMax,
            // A connection keeps both texts for as long as it lives, and nothing counts them.
            hello.software.byteCount + hello.authorization.byteCount <= limits.messages.metadataMax
        else { return nil }
        return hello
    }

    /// The largest payload this peer takes.
    var payloadMax: Int {
        frameBytesMax == 0 ? Self.payloadMaxDefault : min(Int(frameBytesMax), FrameHeader.payloadByteCountMax)
    }

    /// Credit for DATA that this peer gives each new stream.
    var window: Int { initialWindow == 0 ? StreamWindow.initialDefault : Int(initialWindow) }
}
