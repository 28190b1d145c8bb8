public import Base

/// Fields written straight into a buffer, for envelopes whose payload is already encoded.
///
/// Source: protobuf.dev/programming-guides/encoding. Integers and bytes that are zero or empty are left out, as proto3
/// does; a field that must be there regardless is written with `appendTag` and its value.
extension ByteBuffer {
    public enum WireType: UInt64, Sendable {
        case varint = 0
        case fixed64 = 1
        case lengthDelimited = 2
        case fixed32 = 5
    }

    public mutating func appendVarint(_ value: UInt64) {
        let target = reserve(10)
        var rest = value
        var count = 0
        while rest >= 0x80 {
            target.storeBytes(of: UInt8(truncatingIfNeeded: rest) | 0x80, toByteOffset: count, as: UInt8.self)
            rest >>= 7
            count += 1
        }
        target.storeBytes(of: UInt8(truncatingIfNeeded: rest), toByteOffset: count, as: UInt8.self)
        commit(count + 1)
    }

    public mutating func appendTag(_ number: Int, _ type: WireType) {
        appendVarint(UInt64(number) << 3 | type.rawValue)
    }

    /// A uint32, uint64, bool or non-negative enum; a negative int64 as its bit pattern.
    public mutating func appendVarintField(_ number: Int, _ value: UInt64) {
        guard value != 0 else { return }
        appendTag(number, .varint)
        appendVarint(value)
    }

    /// A string, bytes, or an encoded message that is not empty.
    public mutating func appendBytesField(_ number: Int, _ bytes: UnsafeRawBufferPointer) {
        guard !bytes.isEmpty else { return }
        appendTag(number, .lengthDelimited)
        appendVarint(UInt64(bytes.count))
        append(contentsOf: bytes)
    }

    public mutating func appendBytesField(_ number: Int, _ bytes: [UInt8]) {
        bytes.withUnsafeBytes { appendBytesField(number, $0) }
    }

    public mutating func appendBytesField(_ number: Int, _ text: Text) {
        appendBytesField(number, text.bytes)
    }

    /// The message with its tag and length, even when it is empty: presence counts.
    public mutating func appendMessageField(_ number: Int, _ message: some Message) {
        appendTag(number, .lengthDelimited)
        appendVarint(UInt64(message.encodedByteCount))
        message.encode(into: &self)
    }
}

/// The number of bytes `appendVarint` takes for a value.
public func varintByteCount(_ value: UInt64) -> Int {
    value == 0 ? 1 : (63 - value.leadingZeroBitCount) / 7 + 1
}
