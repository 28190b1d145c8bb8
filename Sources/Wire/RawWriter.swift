// Writes into memory that was reserved before in the computed size: the hot path of every answer.

import Base
import Messages

struct RawWriter {
    private(set) var cursor: UnsafeMutableRawPointer

    init(at start: UnsafeMutableRawPointer) { self.cursor = start }

    @inline(__always)
    mutating func byte(_ value: UInt8) {
        cursor.storeBytes(of: value, as: UInt8.self)
        cursor += 1
    }

    @inline(__always)
    mutating func bigEndian(_ value: UInt32) {
        cursor.storeBytes(of: value.bigEndian, as: UInt32.self)
        cursor += 4
    }

    @inline(__always)
    mutating func varint(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            byte(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        byte(UInt8(truncatingIfNeeded: rest))
    }

    @inline(__always)
    mutating func bytes(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress else { return }
        cursor.copyMemory(from: source, byteCount: bytes.count)
        cursor += bytes.count
    }

    /// The tag of a length-delimited field with a number up to 15.
    @inline(__always)
    mutating func tag(_ number: Int) {
        byte(UInt8(truncatingIfNeeded: number) << 3 | 2)
    }

    @inline(__always)
    mutating func lengthDelimited(_ number: Int, _ bytes: UnsafeRawBufferPointer) {
        tag(number)
        varint(UInt64(bytes.count))
        self.bytes(bytes)
    }

    @inline(__always)
    mutating func header(_ header: FrameHeader) {
        bigEndian(header.payloadByteCount)
        bigEndian(header.stream)
        byte(header.type.rawValue)
        byte(header.flags.rawValue)
    }

    /// Bytes a length-delimited field with a one-byte tag takes.
    @inline(__always)
    static func fieldByteCount(_ byteCount: Int) -> Int {
        1 + varintByteCount(UInt64(byteCount)) + byteCount
    }
}
