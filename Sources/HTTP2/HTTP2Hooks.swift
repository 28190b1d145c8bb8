import CNGHTTP2

/// The data that the callbacks of one session work with.
final class HTTP2Hooks {
    let fields = HTTP2Fields()
    // Proof: the object behind this reference owns the engine and alone calls `receive` and `send`, so that it outlives
    // both.
    unowned(unsafe) var events: (any HTTP2Events)?
    private let isServer: Bool

    init(isServer: Bool) { self.isServer = isServer }

    func submitTrailers(_ session: OpaquePointer?, stream: Int32) {
        events?.addTrailers(stream: UInt32(bitPattern: stream), to: fields)
        fields.take { entries, count in
            _ = nghttp2_submit_trailer(session, stream, entries, count)
        }
    }

    /// Resets a request stream whose answer is whole, because the rest of the request is not wanted (RFC 9113 §8.1).
    func localEnded(_ session: OpaquePointer?, stream: Int32) {
        guard isServer, nghttp2_session_get_stream_remote_close(session, stream) == 0 else { return }
        _ = nghttp2_submit_rst_stream(session, 0, stream, HTTP2Code.noError.rawValue)
    }
}
