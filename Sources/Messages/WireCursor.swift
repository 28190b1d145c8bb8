/// Walks encoded bytes and refuses every spelling but the shortest. Source: protobuf.dev/programming-guides/encoding.
///
/// Its bytes must stay valid while it is used: a cursor never outlives the call that made it.
struct WireCursor {
    private var position: UnsafeRawPointer
    private let end: UnsafeRawPointer

    /// A cursor over no bytes needs an address too; any will do.
    init(_ bytes: UnsafeRawBufferPointer) {
        if let start = bytes.baseAddress {
            self.init(position: start, end: start + bytes.count)
        } else {
            self.init(position: UnsafeRawPointer(bitPattern: 1)!, end: UnsafeRawPointer(bitPattern: 1)!)
        }
    }

    private init(position: UnsafeRawPointer, end: UnsafeRawPointer) {
        self.position = position
        self.end = end
    }

    var isAtEnd: Bool { position == end }
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: position, count: end - position) }

    /// Field number 1..2^29−1 and wire type 0, 1, 2 or 5.
    @inline(__always)
    mutating func tag() throws(DecodeError) -> (number: UInt32, wireType: UInt8) {
        let tag = try varint()
        guard tag <= UInt64(UInt32.max), tag >= 8 else { throw .malformed }
        return (UInt32(truncatingIfNeeded: tag >> 3), UInt8(truncatingIfNeeded: tag & 7))
    }

    @inline(__always)
    mutating func varint() throws(DecodeError) -> UInt64 {
        guard position < end else { throw .malformed }
        let first = position.load(as: UInt8.self)
        position += 1
        return first < 0x80 ? UInt64(first) : try longVarint(first)
    }

    /// At most 10 bytes, the last of which is not zero, and no bit above the 64th.
    private mutating func longVarint(_ first: UInt8) throws(DecodeError) -> UInt64 {
        var value = UInt64(first & 0x7F)
        var shift: UInt64 = 7
        while position < end {
            let byte = position.load(as: UInt8.self)
            position += 1
            if shift == 63, byte != 1 { throw .malformed }
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 {
                guard byte != 0 else { throw .malformed }
                return value
            }
            shift += 7
        }
        throw .malformed
    }

    /// The next `byteCount` bytes as a cursor of their own.
    @inline(__always)
    mutating func take(_ byteCount: UInt64) throws(DecodeError) -> WireCursor {
        guard byteCount <= UInt64(end - position) else { throw .malformed }
        let start = position
        position += Int(byteCount)
        return WireCursor(position: start, end: position)
    }

    @inline(__always)
    mutating func lengthDelimited() throws(DecodeError) -> WireCursor {
        try take(try varint())
    }
}
