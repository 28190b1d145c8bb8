import HTTP2
import Messages
import Wire

extension CloseReason {
    /// The reason as the error code of GOAWAY.
    var http2Code: HTTP2Code {
        switch code {
        case .shutdown, .timeout: .noError
        case .limitExceeded: .enhanceYourCalm
        default: .protocolError
        }
    }
}
