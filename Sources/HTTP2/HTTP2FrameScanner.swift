// Walks over the peer's bytes from frame to frame, before nghttp2 reads them. So floods are counted by the frames on
// the wire, whatever the library does with them. Pure.

/// The first 9 bytes of a frame (RFC 9113 §4.1).
public struct HTTP2FrameHeader: Equatable, Sendable {
    public static let byteCount = 9

    public var payloadByteCount: Int
    public var type: UInt8
    public var flags: UInt8
    public var stream: UInt32

    public init(payloadByteCount: Int, type: UInt8, flags: UInt8 = 0, stream: UInt32 = 0) {
        self.payloadByteCount = payloadByteCount
        self.type = type
        self.flags = flags
        self.stream = stream
    }

    init(_ bytes: InlineArray<9, UInt8>) {
        payloadByteCount = Int(bytes[0]) << 16 | Int(bytes[1]) << 8 | Int(bytes[2])
        type = bytes[3]
        flags = bytes[4]
        // The highest bit is reserved.
        stream = UInt32(bytes[5] & 0x7F) << 24 | UInt32(bytes[6]) << 16 | UInt32(bytes[7]) << 8 | UInt32(bytes[8])
    }
}

/// Finds the frames of a client in its bytes.
public struct HTTP2FrameScanner: Sendable {
    /// The client's first bytes: "PRI * HTTP/2.0" and what follows it.
    public static let prefaceByteCount = 24

    /// Bytes of the preface or of a payload that are still to come.
    private var skipping = prefaceByteCount
    private var header = InlineArray<9, UInt8>(repeating: 0)
    private var headerByteCount = 0

    public init() {}

    /// Whether every frame that has begun has come to its end.
    public var isBetweenFrames: Bool { skipping == 0 && headerByteCount == 0 }

    /// The next frame that begins in `bytes` at `offset` or after it. Nil: there is no further frame, and `offset` is
    /// the end.
    public mutating func next(in bytes: UnsafeRawBufferPointer, at offset: inout Int) -> HTTP2FrameHeader? {
        while offset < bytes.count {
            if skipping > 0 {
                let count = min(skipping, bytes.count - offset)
                skipping -= count
                offset += count
                continue
            }
            header[headerByteCount] = bytes[offset]
            headerByteCount += 1
            offset += 1
            guard headerByteCount == HTTP2FrameHeader.byteCount else { continue }
            headerByteCount = 0
            let found = HTTP2FrameHeader(header)
            skipping = found.payloadByteCount
            return found
        }
        return nil
    }
}
