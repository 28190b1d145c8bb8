import HTTP2
import Messages
import Wire

extension CloseReason {
    /// How GOAWAY says it.
    var http2Code: HTTP2Code {
        switch code {
        case .shutdown, .timeout: .noError
        case .limitExceeded: .enhanceYourCalm
        default: .protocolError
        }
    }
}
