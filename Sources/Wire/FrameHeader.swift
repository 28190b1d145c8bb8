// The ten bytes in front of every frame: containerd's ttrpc 1.2 (PROTOCOL.md), extended by types from 0x10 on.

public import Base

/// The type, the length and the stream of a frame.
///
/// On the wire: payload length (4 bytes, big-endian), stream id (4 bytes, big-endian), type (1), flags (1).
public struct FrameHeader: Equatable, Sendable {
    public static let byteCount = 10

    /// The first byte of a frame is always zero, so that it cannot be mistaken for TLS (0x16) or HTTP/2 (0x50).
    public static let payloadByteCountMax = 0xFF_FFFF

    /// Does not count the header. A peer may write any value: the decoder enforces the limits.
    public var payloadByteCount: UInt32
    public var stream: UInt32
    public var type: FrameType
    public var flags: FrameFlags

    public init(payloadByteCount: UInt32, stream: UInt32, type: FrameType, flags: FrameFlags = []) {
        self.payloadByteCount = payloadByteCount
        self.stream = stream
        self.type = type
        self.flags = flags
    }

    /// Nil while fewer than ten bytes are there.
    public static func read(_ bytes: UnsafeRawBufferPointer) -> FrameHeader? {
        guard bytes.count >= byteCount else { return nil }
        return FrameHeader(
            payloadByteCount: UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self)),
            stream: UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self)),
            type: FrameType(rawValue: bytes[8]),
            flags: FrameFlags(rawValue: bytes[9]))
    }

    public func append(to buffer: inout ByteBuffer) {
        var writer = RawWriter(at: buffer.reserve(Self.byteCount))
        writer.header(self)
        buffer.commit(Self.byteCount)
    }
}

/// A struct, not an enum: types this version does not know are part of the protocol.
public struct FrameType: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) { self.rawValue = rawValue }

    // ttrpc's own.
    public static let request = FrameType(rawValue: 0x01)
    public static let response = FrameType(rawValue: 0x02)
    public static let data = FrameType(rawValue: 0x03)

    // Ours: only on connections that opened with HELLO.
    public static let hello = FrameType(rawValue: 0x10)
    public static let ping = FrameType(rawValue: 0x11)
    public static let goAway = FrameType(rawValue: 0x12)
    public static let cancel = FrameType(rawValue: 0x13)
    public static let window = FrameType(rawValue: 0x14)

    /// A peer that does not know a critical type ends the connection. It skips other types that it does not know.
    public var isCritical: Bool { rawValue >= 0x80 }
}

public struct FrameFlags: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// REQUEST: a stream on which the client sends nothing more. DATA: the sender's last frame on the stream.
    public static let remoteClosed = FrameFlags(rawValue: 0x01)
    /// REQUEST: a stream on which the client will send DATA.
    public static let remoteOpen = FrameFlags(rawValue: 0x02)
    /// DATA: the frame has no message. The flag is in ttrpc's code, but not in its specification.
    public static let noData = FrameFlags(rawValue: 0x04)
    /// PING: this is the answer to a PING.
    public static let ack = FrameFlags(rawValue: 0x01)
}

/// The stream ids of clients: odd, and at most 2^31 - 1, the value that stands for "no last stream yet" in GOAWAY.
public enum StreamID {
    public static let max: UInt32 = 0x7FFF_FFFF

    public static func isClientStream(_ id: UInt32) -> Bool { id & 1 == 1 && id <= max }
}
