/// The reason why a stream or a connection ends (RFC 9113 §7).
public enum HTTP2Code: UInt32, Sendable {
    case noError = 0
    case protocolError = 1
    case internalError = 2
    case flowControlError = 3
    case refusedStream = 7
    case cancel = 8
    case enhanceYourCalm = 11
}
