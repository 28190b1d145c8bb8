import Base

/// The id a request goes by in answers and logs: the client's `x-request-id`, or one made of connection and stream.
enum RequestID {
    /// A longer one of the client's is replaced.
    static let clientByteCountMax = 128
    static let byteCountMax = 32

    /// `scratch` holds the id if it has to be made: 16 hex digits of the connection, "-", 8 of the stream. A
    /// connection's number begins with digits that each start of a server draws, so that no other has the same id.
    static func of(
        _ given: UnsafeRawBufferPointer?, connection: UInt64, stream: UInt32, _ scratch: UnsafeMutableRawBufferPointer
    ) -> UnsafeRawBufferPointer {
        if let given, (1...clientByteCountMax).contains(given.count) { return given }
        for index in 0..<16 { scratch[index] = digit(connection >> (60 - index * 4)) }
        scratch[16] = UInt8(ascii: "-")
        for index in 0..<8 { scratch[17 + index] = digit(stream >> (28 - index * 4)) }
        return UnsafeRawBufferPointer(rebasing: scratch[..<25])
    }

    /// Of the lowest four bits.
    private static func digit(_ value: some FixedWidthInteger) -> UInt8 {
        let nibble = UInt8(truncatingIfNeeded: value) & 15
        return nibble < 10 ? 0x30 + nibble : 0x57 + nibble
    }
}
