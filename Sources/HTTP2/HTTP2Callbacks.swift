// The functions that nghttp2 calls, and the event that each of them reports. They are set once for all sessions.

import CNGHTTP2

/// The callbacks and options of all sessions; never changed after they were made.
struct HTTP2Callbacks: @unchecked Sendable {
    // Unchecked: nghttp2 copies both into each session and only reads them ("nghttp2_session_server_new2").

    static let shared = HTTP2Callbacks()

    /// More resets than a peer can send in a second.
    private static let resetsMax: UInt64 = 1 << 32

    let callbacks: OpaquePointer
    let options: OpaquePointer

    private init() {
        var callbacks: OpaquePointer?
        var options: OpaquePointer?
        guard nghttp2_session_callbacks_new(&callbacks) == 0, let callbacks,
            nghttp2_option_new(&options) == 0, let options
        else { preconditionFailure("nghttp2: no memory") }
        self.callbacks = callbacks
        self.options = options
        // Received bytes count against the window until `HTTP2Engine.consume`.
        nghttp2_option_set_no_auto_window_update(options, 1)
        // Streams that are closed are forgotten at once.
        nghttp2_option_set_no_closed_streams(options, 1)
        // The owner of a session bounds the resets. By default, nghttp2 allows 33 a second in the long run.
        nghttp2_option_set_stream_reset_rate_limit(options, Self.resetsMax, Self.resetsMax)
        Self.setHeaders(callbacks)
        Self.setFrames(callbacks)
    }

    /// The source of a stream's body. Without a callback, the headers end the stream.
    static func dataProvider(hasBody: Bool) -> nghttp2_data_provider {
        nghttp2_data_provider(source: nghttp2_data_source(), read_callback: hasBody ? readBody : nil)
    }

    private static func setHeaders(_ callbacks: OpaquePointer) {
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, user in
            guard let frame, let hooks = hooks(user) else { return 0 }
            hooks.events?.headersBegan(
                stream: UInt32(bitPattern: frame.pointee.hd.stream_id),
                isFirst: frame.pointee.headers.cat != NGHTTP2_HCAT_HEADERS)
            return 0
        }
        nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _, _, name, nameByteCount, value, valueByteCount, _, user in
            guard let events = hooks(user)?.events else { return 0 }
            let goesOn = events.header(
                UnsafeRawBufferPointer(start: name, count: nameByteCount),
                UnsafeRawBufferPointer(start: value, count: valueByteCount))
            return goesOn ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE.rawValue
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) { _, _, stream, bytes, count, user in
            guard let hooks = hooks(user) else { return 0 }
            hooks.events?.data(
                UnsafeRawBufferPointer(start: bytes, count: count), stream: UInt32(bitPattern: stream))
            return 0
        }
    }

    private static func setFrames(_ callbacks: OpaquePointer) {
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, user in
            guard let frame, let events = hooks(user)?.events else { return 0 }
            received(frame, events)
            return 0
        }
        nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks) { _, _, code, user in
            guard let events = hooks(user)?.events else { return 0 }
            if code == NGHTTP2_ERR_REFUSED_STREAM.rawValue { events.refused() } else { events.violated() }
            return 0
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, stream, _, user in
            hooks(user)?.events?.closed(stream: UInt32(bitPattern: stream))
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_send_callback(callbacks) { session, frame, user in
            guard let header = frame?.pointee.hd, isEnd(header) else { return 0 }
            hooks(user)?.localEnded(session, stream: header.stream_id)
            return 0
        }
    }
}

private func received(_ frame: UnsafePointer<nghttp2_frame>, _ events: any HTTP2Events) {
    let header = frame.pointee.hd
    let stream = UInt32(bitPattern: header.stream_id)
    switch UInt32(header.type) {
    case NGHTTP2_HEADERS.rawValue: events.headersEnded(stream: stream, isLast: isEnd(header))
    case NGHTTP2_DATA.rawValue: if isEnd(header) { events.remoteEnded(stream: stream) }
    case NGHTTP2_RST_STREAM.rawValue: events.reset(stream: stream)
    case NGHTTP2_PING.rawValue where UInt32(header.flags) & NGHTTP2_FLAG_ACK.rawValue != 0:
        let opaque = withUnsafeBytes(of: frame.pointee.ping.opaque_data) {
            UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self))
        }
        events.pingAcknowledged(opaque)
    case NGHTTP2_WINDOW_UPDATE.rawValue: events.windowOpened(stream: stream)
    case NGHTTP2_SETTINGS.rawValue: events.windowOpened(stream: 0)
    case NGHTTP2_GOAWAY.rawValue: events.peerLeft()
    default: break
    }
}

private func isEnd(_ header: nghttp2_frame_hd) -> Bool {
    UInt32(header.type) <= NGHTTP2_HEADERS.rawValue
        && UInt32(header.flags) & NGHTTP2_FLAG_END_STREAM.rawValue != 0
}

private let readBody: nghttp2_data_source_read_callback = {
    session, stream, buffer, count, flags, _, user in
    guard let hooks = hooks(user), let events = hooks.events, let flags else {
        return Int(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue)
    }
    let body = events.nextBytes(
        stream: UInt32(bitPattern: stream), into: UnsafeMutableRawBufferPointer(start: buffer, count: count))
    switch body {
    case .bytes(let count): return count
    case .none: return Int(NGHTTP2_ERR_DEFERRED.rawValue)
    case .last(let count):
        flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue
        return count
    case .lastBeforeTrailers(let count):
        flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue | NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue
        hooks.submitTrailers(session, stream: stream)
        return count
    }
}

/// nghttp2 hands back the pointer that it was given.
private func hooks(_ user: UnsafeMutableRawPointer?) -> HTTP2Hooks? {
    user.map { Unmanaged<HTTP2Hooks>.fromOpaque($0).takeUnretainedValue() }
}
