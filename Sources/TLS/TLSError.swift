import CTLS

/// The reason why a certificate, a key or a connection is refused, for the operator and the log. Never key material.
public struct TLSError: Error, Equatable, CustomStringConvertible {
    public let description: String

    public init(_ description: String) { self.description = description }

    /// The error that `call` left in this thread's error queue, which is empty afterwards.
    static func last(of call: String) -> TLSError {
        defer { ERR_clear_error() }
        let code = ERR_peek_error()
        let reason = ERR_reason_error_string(code).map { String(cString: $0) } ?? "error \(code)"
        return TLSError("\(call): \(reason)")
    }
}
