import Base
import HTTP2
import Wire

/// How a call ended, as the fields that gRPC sends last: `grpc-status`, `grpc-message`, `grpc-status-details-bin`.
struct GRPCStatus: Sendable {
    let code: StatusCode
    private let message: [UInt8]
    private let details: [UInt8]

    init(_ failure: Failure, requestID: UnsafeRawBufferPointer?) {
        var status = ByteBuffer()
        status.appendStatus(of: failure, requestID: requestID)
        // A field's value must stay below the sum that a client takes (mostly 8 KiB), whatever the failure contains.
        let isShort = status.readableByteCount <= Self.detailsByteCountMax
        self.code = failure.code
        self.message = Self.percentEncoded(failure.message)
        self.details = isShort ? Self.unpadded(status.readable) : []
    }

    private static let detailsByteCountMax = 4 * 1024
    private static let messageByteCountMax = 1_024

    func add(to fields: HTTP2Fields) {
        fields.add("grpc-status", Self.digits(code))
        message.withUnsafeBytes { fields.add("grpc-message", unique: $0) }
        if !details.isEmpty { details.withUnsafeBytes { fields.add("grpc-status-details-bin", unique: $0) } }
    }

    /// Keeps printable ASCII except %, and encodes every other byte of the UTF-8 as %XX. A space at either end is
    /// encoded, too: field values lose the spaces at their ends (RFC 9110 §5.5).
    static func percentEncoded(_ text: String) -> [UInt8] {
        var encoded: [UInt8] = []
        for byte in text.utf8 {
            // A cut in the middle of a character would not be UTF-8 any more.
            if encoded.count >= messageByteCountMax, byte & 0xC0 != 0x80 { break }
            let isFirstSpace = encoded.isEmpty && byte == UInt8(ascii: " ")
            if (0x20...0x7E).contains(byte), byte != UInt8(ascii: "%"), !isFirstSpace {
                encoded.append(byte)
            } else {
                appendEscaped(byte, to: &encoded)
            }
        }
        if encoded.last == UInt8(ascii: " ") {
            encoded.removeLast()
            appendEscaped(UInt8(ascii: " "), to: &encoded)
        }
        return encoded
    }

    private static func appendEscaped(_ byte: UInt8, to encoded: inout [UInt8]) {
        encoded.append(UInt8(ascii: "%"))
        encoded.append(hexDigit(byte >> 4))
        encoded.append(hexDigit(byte & 15))
    }

    private static func hexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
    }

    /// Base64 without the padding, as gRPC wants it sent.
    static func unpadded(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        var encoded = Base64.standard.encode(bytes)
        while encoded.last == UInt8(ascii: "=") { encoded.removeLast() }
        return encoded
    }

    static func digits(_ code: StatusCode) -> StaticString {
        switch code {
        case .ok: "0"
        case .cancelled: "1"
        case .unknown: "2"
        case .invalidArgument: "3"
        case .deadlineExceeded: "4"
        case .notFound: "5"
        case .alreadyExists: "6"
        case .permissionDenied: "7"
        case .resourceExhausted: "8"
        case .failedPrecondition: "9"
        case .aborted: "10"
        case .outOfRange: "11"
        case .unimplemented: "12"
        case .internal: "13"
        case .unavailable: "14"
        case .dataLoss: "15"
        case .unauthenticated: "16"
        }
    }
}
