import Base
import Messages

/// A RESPONSE's payload, looked at no further than a load generator must: OK or not, and where the message lies.
enum Answer {
    case ok(message: UnsafeRawBufferPointer)
    /// The bytes of a google.rpc.Status.
    case failure(status: UnsafeRawBufferPointer)
    case malformed

    init(reading envelope: UnsafeRawBufferPointer) {
        var fields = Fields(envelope)
        var message = UnsafeRawBufferPointer(rebasing: envelope[..<0])
        while let field = fields.next() {
            switch field.number {
            case 1 where !Self.isOK(field.bytes):
                self = .failure(status: field.bytes)
                return
            case 2: message = field.bytes
            default: break
            }
        }
        self = fields.isMalformed ? .malformed : .ok(message: message)
    }

    /// A status may be there and say 0; its code comes first.
    private static func isOK(_ status: UnsafeRawBufferPointer) -> Bool {
        status.isEmpty || status[0] != 0x08 || status.count > 1 && status[1] == 0
    }

    /// The reason of a failure, `EMAIL_EXISTS`; the code's name where none is given.
    static func reason(ofStatus bytes: UnsafeRawBufferPointer) -> String {
        guard let status = try? GoogleStatus(decoding: bytes) else { return "MALFORMED_STATUS" }
        for detail in status.details where detail.typeURL.string.hasSuffix("/google.rpc.ErrorInfo") {
            if let info = try? GoogleErrorInfo(decoding: detail.value), !info.reason.isEmpty {
                return info.reason.string
            }
        }
        return StatusCode(rawValue: status.code)?.name ?? "CODE_\(status.code)"
    }
}

/// The tokens in the answer to a sign-up, a sign-in or a refresh: its field 2 in each of them.
struct TokenSlices {
    let idToken: UnsafeRawBufferPointer
    let refreshToken: UnsafeRawBufferPointer

    /// Nil when one is missing.
    init?(inAnswer message: UnsafeRawBufferPointer) {
        guard let tokens = Fields.first(2, in: message), let idToken = Fields.first(1, in: tokens),
            let refreshToken = Fields.first(2, in: tokens)
        else { return nil }
        self.idToken = idToken
        self.refreshToken = refreshToken
    }
}

/// The fields of a message in their order, with numbers up to 15. A number's own value is skipped: `bytes` is empty
/// then.
private struct Fields {
    private let bytes: UnsafeRawBufferPointer
    private var offset = 0
    private(set) var isMalformed = false

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    static func first(_ number: UInt8, in message: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        var fields = Fields(message)
        while let field = fields.next() {
            if field.number == number { return field.bytes }
        }
        return nil
    }

    mutating func next() -> (number: UInt8, bytes: UnsafeRawBufferPointer)? {
        guard offset < bytes.count else { return nil }
        let tag = bytes[offset]
        offset += 1
        if tag < 0x80, let value = varint() {
            if tag & 7 == 0 { return (tag >> 3, UnsafeRawBufferPointer(rebasing: bytes[..<0])) }
            if tag & 7 == 2, value <= UInt64(bytes.count - offset) {
                let slice = UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + Int(value)])
                offset += Int(value)
                return (tag >> 3, slice)
            }
        }
        isMalformed = true
        return nil
    }

    private mutating func varint() -> UInt64? {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 64, by: 7) {
            guard offset < bytes.count else { return nil }
            let byte = bytes[offset]
            offset += 1
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
        }
        return nil
    }
}
