import Base

/// The id a request goes by in answers and logs: the client's `x-request-id`, or one made of connection and stream.
enum RequestID {
    /// A longer id of the client is replaced.
    static let clientByteCountMax = 128
    static let byteCountMax = 32

    /// `scratch` holds the id if it has to be made: 16 hex digits of the connection, "-", 8 of the stream. A
    /// connection's number begins with digits that each start of a server draws, so that no other has the same id.
    static func of(
        _ given: UnsafeRawBufferPointer?, connection: UInt64, stream: UInt32, _ scratch: UnsafeMutableRawBufferPointer
    ) -> UnsafeRawBufferPointer {
        if let given, (1...clientByteCountMax).contains(given.count) { return given }
        scratch.storeBytes(of: digits(UInt32(truncatingIfNeeded: connection >> 32)), as: UInt64.self)
        scratch.storeBytes(of: digits(UInt32(truncatingIfNeeded: connection)), toByteOffset: 8, as: UInt64.self)
        scratch[16] = UInt8(ascii: "-")
        scratch.storeBytes(of: digits(stream), toByteOffset: 17, as: UInt64.self)
        return UnsafeRawBufferPointer(rebasing: scratch[..<25])
    }

    /// Eight hex digits, the highest digit first in memory, computed side by side.
    private static func digits(_ value: UInt32) -> UInt64 {
        var digits = UInt64(truncatingIfNeeded: value.byteSwapped)
        digits = (digits | digits << 16) & 0x0000_FFFF_0000_FFFF
        digits = (digits | digits << 8) & 0x00FF_00FF_00FF_00FF
        digits = (digits >> 4 | digits << 8) & 0x0F0F_0F0F_0F0F_0F0F
        // 1 for the digits a to f.
        let letters = (digits + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
        return digits + 0x3030_3030_3030_3030 + letters * 0x27
    }
}
