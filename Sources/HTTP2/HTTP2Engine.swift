// One side of an HTTP/2 connection over nghttp2, which finds the frames, checks them against RFC 9113, compresses
// header fields and counts the windows. It does no I/O: bytes are passed in and out. One owner, not thread-safe.
//
// C code calls the events, so that each of them runs to its end before the engine does anything else.

import CNGHTTP2

/// One connection's frames, streams and windows.
public final class HTTP2Engine {
    public enum Role: Sendable { case server, client }

    private let session: OpaquePointer
    private let hooks: HTTP2Hooks

    /// The fields of the next answer or request.
    public var fields: HTTP2Fields { hooks.fields }

    /// The receiver of all events: the owner of the engine, which sets this before the first byte comes.
    public var events: (any HTTP2Events)? {
        get { hooks.events }
        set { hooks.events = newValue }
    }

    public init(_ role: Role) {
        hooks = HTTP2Hooks(isServer: role == .server)
        var session: OpaquePointer?
        let state = HTTP2Callbacks.shared
        let code =
            role == .server
            ? nghttp2_session_server_new2(&session, state.callbacks, nil, state.options)
            : nghttp2_session_client_new2(&session, state.callbacks, nil, state.options)
        guard code == 0, let session else { preconditionFailure("nghttp2_session_new: no memory") }
        self.session = session
        // The pointer is used in callbacks only, which come from calls to this object; it keeps the hooks alive.
        nghttp2_session_set_user_data(session, Unmanaged.passUnretained(hooks).toOpaque())
    }

    deinit { nghttp2_session_del(session) }

    // MARK: In and out

    /// Takes in bytes of the peer. Returns false if they are not HTTP/2, or so wrong that the connection cannot go on.
    public func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return true }
        return nghttp2_session_mem_recv(session, start, bytes.count) == bytes.count
    }

    /// Hands out everything that may be sent now.
    public func send(_ append: (UnsafeRawBufferPointer) -> Void) {
        while true {
            var bytes: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(session, &bytes)
            guard count > 0, let bytes else { return }
            append(UnsafeRawBufferPointer(start: bytes, count: count))
        }
    }

    /// Whether nothing is left to read or to send: GOAWAY was sent for a violation, or all work after a GOAWAY is done.
    public var isOver: Bool {
        nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0
    }

    // MARK: The connection

    public func submit(_ settings: HTTP2Settings) {
        var entries = [
            nghttp2_settings_entry(
                settings_id: Int32(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue),
                value: UInt32(clamping: settings.streamsMax)),
            nghttp2_settings_entry(
                settings_id: Int32(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE.rawValue),
                value: UInt32(clamping: min(settings.initialWindow, Int(Int32.max)))),
            nghttp2_settings_entry(
                settings_id: Int32(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE.rawValue),
                value: UInt32(clamping: settings.headerListByteCountMax)),
        ]
        // RFC 9113 §5.3: the original priorities of HTTP/2 are ignored.
        entries.append(
            nghttp2_settings_entry(
                settings_id: Int32(NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES.rawValue), value: 1))
        _ = nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), &entries, entries.count)
    }

    /// How many bytes of all streams together the peer may send before some are consumed.
    public func setConnectionWindow(_ byteCount: Int) {
        _ = nghttp2_session_set_local_window_size(session, 0, 0, Int32(clamping: byteCount))
    }

    public func ping(_ opaque: UInt64) {
        withUnsafeBytes(of: opaque.bigEndian) {
            _ = nghttp2_submit_ping(session, 0, $0.baseAddress?.assumingMemoryBound(to: UInt8.self))
        }
    }

    /// Tells the peer to go elsewhere; streams that it began before it knew are still taken.
    public func announceGoAway() { _ = nghttp2_submit_shutdown_notice(session) }

    /// Sends GOAWAY: streams above the last one that was taken are not processed.
    public func goAway(_ code: HTTP2Code, _ text: String) {
        let last = nghttp2_session_get_last_proc_stream_id(session)
        var text = text
        text.withUTF8 {
            _ = nghttp2_submit_goaway(session, 0, last, code.rawValue, $0.baseAddress, $0.count)
        }
    }

    // MARK: A stream

    /// Answers with `fields`; a body comes from `HTTP2Events.nextBytes`.
    public func respond(stream: UInt32, hasBody: Bool) {
        fields.take { entries, count in
            var body = HTTP2Callbacks.dataProvider(hasBody: hasBody)
            _ = nghttp2_submit_response(session, Int32(bitPattern: stream), entries, count, &body)
        }
    }

    /// Begins a stream of the client with `fields`. Returns 0 if there can be no more streams.
    public func request(hasBody: Bool) -> UInt32 {
        fields.take { entries, count in
            var body = HTTP2Callbacks.dataProvider(hasBody: hasBody)
            let stream = nghttp2_submit_request(session, nil, entries, count, &body, nil)
            return stream > 0 ? UInt32(stream) : 0
        }
    }

    /// Ends a body of which no bytes are left, with the trailers of `HTTP2Events.addTrailers`. They do not wait for a
    /// window: only DATA is counted against it (RFC 9113 §5.2.1).
    public func endBody(stream: UInt32) { hooks.submitTrailers(session, stream: Int32(bitPattern: stream)) }

    /// Tells nghttp2 that a body without bytes has bytes again.
    public func resume(stream: UInt32) { _ = nghttp2_session_resume_data(session, Int32(bitPattern: stream)) }

    public func reset(stream: UInt32, _ code: HTTP2Code) {
        _ = nghttp2_submit_rst_stream(session, 0, Int32(bitPattern: stream), code.rawValue)
    }

    /// The peer may send `byteCount` more bytes on this stream.
    public func consume(_ byteCount: Int, stream: UInt32) {
        _ = nghttp2_session_consume_stream(session, Int32(bitPattern: stream), byteCount)
    }

    /// The peer may send `byteCount` more bytes on all streams together.
    public func consumeOfConnection(_ byteCount: Int) {
        _ = nghttp2_session_consume_connection(session, byteCount)
    }

    /// How many streams the peer takes at once, as far as its settings have come.
    public var peerStreamsMax: Int {
        Int(nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS))
    }

    /// Whether the peer takes bytes on this stream now.
    public func hasWindow(stream: UInt32) -> Bool {
        nghttp2_session_get_remote_window_size(session) > 0
            && nghttp2_session_get_stream_remote_window_size(session, Int32(bitPattern: stream)) > 0
    }
}
