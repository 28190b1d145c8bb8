import CTLS
import Glibc

/// OpenSSL's access to a session's socket: it reads bytes that the session has already received, and sends by itself.
///
/// By itself, OpenSSL would read the five bytes of a record's head first and then the record: two system calls for each
/// record. Here the session receives as much as there is, once, and OpenSSL takes records out of that until it is used
/// up.
enum SocketBIO {
    /// The state that a session shares with its BIO.
    struct State {
        let descriptor: Int32
        /// Received bytes that OpenSSL has not taken yet.
        var input = UnsafeRawBufferPointer(start: nil, count: 0)
        /// The peer's end came after `input`.
        var isEnded = false
        /// OpenSSL gets no more of `input`: its peer has sent too many KeyUpdates.
        var isStopped = false
        /// The errno of a failed send.
        var sendError: Int32 = 0
        /// KeyUpdate messages that were received.
        var keyUpdateCount = 0
        var keyUpdateCountMax = 0
    }

    // Made once, and not changed afterwards.
    nonisolated(unsafe) static let method: OpaquePointer? = {
        TLSLibrary.start
        let type = BIO_get_new_index() | BIO_TYPE_SOURCE_SINK
        guard let method = BIO_meth_new(type, "postern socket") else { return nil }
        BIO_meth_set_read(method) { bio, buffer, count in SocketBIO.read(bio, buffer, count) }
        BIO_meth_set_write(method) { bio, buffer, count in SocketBIO.write(bio, buffer, count) }
        BIO_meth_set_ctrl(method) { bio, command, _, _ in
            switch command {
            case BIO_CTRL_FLUSH: 1
            case BIO_CTRL_EOF: SocketBIO.state(of: bio)?.pointee.isEnded == true ? 1 : 0
            default: 0
            }
        }
        return method
    }()

    /// The flags of BIO_clear_retry_flags(3), which is a macro.
    private static let retryFlags =
        BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_IO_SPECIAL | BIO_FLAGS_SHOULD_RETRY

    private static func state(of bio: OpaquePointer?) -> UnsafeMutablePointer<State>? {
        BIO_get_data(bio)?.assumingMemoryBound(to: State.self)
    }

    private static func read(_ bio: OpaquePointer?, _ buffer: UnsafeMutablePointer<CChar>?, _ count: Int32) -> Int32 {
        guard let state = state(of: bio), let buffer, count > 0 else { return -1 }
        BIO_clear_flags(bio, retryFlags)
        let taken = min(Int(count), state.pointee.input.count)
        guard taken > 0, !state.pointee.isStopped, let start = state.pointee.input.baseAddress else {
            if state.pointee.isEnded { return 0 }
            BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
            return -1
        }
        memcpy(buffer, start, taken)
        state.pointee.input = UnsafeRawBufferPointer(rebasing: state.pointee.input[taken...])
        return Int32(clamping: taken)
    }

    private static func write(_ bio: OpaquePointer?, _ buffer: UnsafePointer<CChar>?, _ count: Int32) -> Int32 {
        guard let state = state(of: bio), let buffer, count > 0 else { return -1 }
        BIO_clear_flags(bio, retryFlags)
        while true {
            let sent = send(state.pointee.descriptor, buffer, Int(count), Int32(MSG_NOSIGNAL))
            if sent >= 0 { return Int32(clamping: sent) }
            switch errno {
            case EINTR: continue
            case EAGAIN: BIO_set_flags(bio, BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY)
            default: state.pointee.sendError = errno
            }
            return -1
        }
    }
}
