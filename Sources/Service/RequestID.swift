import Base

/// The id a request goes by in answers and logs: the client's `x-request-id`, or one made of connection and stream.
enum RequestID {
    /// A longer one of the client's is replaced.
    static let clientByteCountMax = 128
    static let byteCountMax = 32

    /// `scratch` holds the id if it has to be made: 8 hex digits of the connection, "-", 8 of the stream.
    static func of(
        _ given: UnsafeRawBufferPointer?, connection: UInt64, stream: UInt32, _ scratch: UnsafeMutableRawBufferPointer
    ) -> UnsafeRawBufferPointer {
        if let given, (1...clientByteCountMax).contains(given.count) { return given }
        for index in 0..<8 {
            let shift = UInt64(28 - index * 4)
            scratch[index] = digit(connection >> shift & 15)
            scratch[9 + index] = digit(UInt64(stream) >> shift & 15)
        }
        scratch[8] = UInt8(ascii: "-")
        return UnsafeRawBufferPointer(rebasing: scratch[..<17])
    }

    private static func digit(_ value: UInt64) -> UInt8 { value < 10 ? 0x30 + UInt8(value) : 0x57 + UInt8(value) }
}
