import Base
import Messages

/// A RESPONSE's payload, read only as far as a load generator must: OK or not, and where the message lies.
enum Answer {
    case ok(message: UnsafeRawBufferPointer)
    /// The bytes of a google.rpc.Status.
    case failure(status: UnsafeRawBufferPointer)
    case malformed

    init(reading envelope: UnsafeRawBufferPointer) {
        var fields = FieldReader(envelope)
        var message = UnsafeRawBufferPointer(rebasing: envelope[..<0])
        do throws(DecodeError) {
            while let field = try fields.next() {
                switch (field.number, field.value) {
                case (WireResponse.FieldNumber.status, .bytes(let status)) where !Self.isOK(status):
                    self = .failure(status: status)
                    return
                case (WireResponse.FieldNumber.payload, .bytes(let bytes)): message = bytes
                default: break
                }
            }
            self = .ok(message: message)
        } catch {
            self = .malformed
        }
    }

    /// Whether a status means OK. A status may be present and have the code 0.
    private static func isOK(_ status: UnsafeRawBufferPointer) -> Bool {
        var fields = FieldReader(status)
        while let field = try? fields.next() {
            if field.number == GoogleStatus.FieldNumber.code, case .varint(let code) = field.value { return code == 0 }
        }
        return true
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

/// The tokens in the answer to a sign-up, a sign-in or a refresh: the same field in each of them.
struct TokenSlices {
    let idToken: UnsafeRawBufferPointer
    let refreshToken: UnsafeRawBufferPointer

    /// Nil when one is missing.
    init?(inAnswer message: UnsafeRawBufferPointer) {
        guard let tokens = firstField(AccountsSignUpResponse.FieldNumber.tokens, in: message),
            let idToken = firstField(TokenPair.FieldNumber.idToken, in: tokens),
            let refreshToken = firstField(TokenPair.FieldNumber.refreshToken, in: tokens)
        else { return nil }
        self.idToken = idToken
        self.refreshToken = refreshToken
    }
}
