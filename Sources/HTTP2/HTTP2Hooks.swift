import CNGHTTP2

/// What the callbacks of one session work with.
final class HTTP2Hooks {
    let fields = HTTP2Fields()
    // Proof: what this refers to owns the engine and alone calls `receive` and `send`, so that it outlives both.
    unowned(unsafe) var events: (any HTTP2Events)?
    private let isServer: Bool

    init(isServer: Bool) { self.isServer = isServer }

    func submitTrailers(_ session: OpaquePointer?, stream: Int32) {
        events?.addTrailers(stream: UInt32(bitPattern: stream), to: fields)
        fields.take { entries, count in
            _ = nghttp2_submit_trailer(session, stream, entries, count)
        }
    }

    /// RFC 9113 §8.1: after a whole answer the rest of the request is not wanted.
    func localEnded(_ session: OpaquePointer?, stream: Int32) {
        guard isServer, nghttp2_session_get_stream_remote_close(session, stream) == 0 else { return }
        _ = nghttp2_submit_rst_stream(session, 0, stream, HTTP2Code.noError.rawValue)
    }
}
