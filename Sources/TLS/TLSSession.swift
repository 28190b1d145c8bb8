import CTLS
import Glibc

/// One TLS connection over a connected, non-blocking socket, which it borrows. One owner, on one thread at a time.
///
/// No call blocks: a call that cannot go on at once returns what it waits for. After `failed` and `ended` nothing more
/// is read.
public final class TLSSession {
    public enum Step: Equatable, Sendable {
        /// This many bytes of the application; never 0.
        case bytes(Int)
        case wantsRead
        case wantsWrite
        /// The peer said that it sends no more (close_notify).
        case ended
        /// The connection ended without close_notify: somebody else may have cut the input short.
        case truncated
        case failed(TLSError)
    }

    /// The most bytes that are received at once: two records of the greatest size.
    private static let receivedByteCountMax = 32 * 1024
    /// The most KeyUpdates of a peer; one more is allowed for each MiB that it sent.
    private let keyUpdateCountMax: Int

    /// OpenSSL's object of the connection, `SSL`.
    let pointer: OpaquePointer
    /// Keeps the context alive, as SSL_new does; its certificate is of interest too.
    public let context: TLSContext
    private let state: UnsafeMutablePointer<SocketBIO.State>
    /// Received bytes that OpenSSL has not taken, because it had to write first or the caller's buffer was full.
    private var rest: [UInt8] = []
    private var receivedByteCount = 0
    /// The step that came after the bytes of the last read.
    private var next: Step?
    /// OpenSSL has to send something before it goes on.
    private var isWriteWanted = false
    public private(set) var isEstablished = false
    /// OpenSSL must not be called again: SSL_shutdown(3) excludes it after SSL_ERROR_SSL and SSL_ERROR_SYSCALL.
    private var isBroken = false
    private var hasSaidEnd = false
    /// OpenSSL keeps its buffer for a record: a part of one has come, or not all bytes of one were read.
    private var isInRecord = false
    /// OpenSSL's buffer for a record has room for the greatest one, however much has come. It is freed between records
    /// (SSL_MODE_RELEASE_BUFFERS).
    private static let recordBufferByteCount = 17 * 1024

    public init(_ context: TLSContext, descriptor: Int32, keyUpdateCountMax: Int) throws(TLSError) {
        self.context = context
        self.keyUpdateCountMax = keyUpdateCountMax
        ERR_clear_error()
        guard let method = SocketBIO.method, let bio = BIO_new(method) else { throw .last(of: "BIO_new") }
        guard let pointer = SSL_new(context.pointer) else {
            BIO_free(bio)
            throw .last(of: "SSL_new")
        }
        self.pointer = pointer
        state = .allocate(capacity: 1)
        state.initialize(to: SocketBIO.State(descriptor: descriptor, keyUpdateCountMax: keyUpdateCountMax))
        BIO_set_data(bio, state)
        BIO_set_init(bio, 1)
        // One reference, for both directions (SSL_set_bio(3)).
        SSL_set_bio(pointer, bio, bio)
        tls_set_msg_callback_arg(pointer, state)
        if context.role == .server { SSL_set_accept_state(pointer) } else { SSL_set_connect_state(pointer) }
    }

    deinit {
        SSL_free(pointer)
        state.deallocate()
    }

    /// Whether the session holds input that the socket does not announce any more: read again.
    public var hasPendingInput: Bool { !rest.isEmpty || next != nil || SSL_pending(pointer) > 0 }

    /// The memory of input that was received and not read, beside that of every session.
    public var heldByteCount: Int { rest.count + (isInRecord ? Self.recordBufferByteCount : 0) }

    // MARK: Reading

    /// Receives at most once, goes on with the handshake, and decrypts complete records.
    ///
    /// The bytes of the application are at the beginning of `buffer`; the rest of `buffer` is overwritten, because its
    /// other half holds the received bytes. `byteCount` is at least 2.
    public func read(into buffer: UnsafeMutableRawPointer, byteCount: Int) -> Step {
        if let step = next.take() { return step }
        guard !isBroken else { return .failed(TLSError("the session has failed")) }
        if !rest.isEmpty || isWriteWanted || SSL_pending(pointer) > 0 {
            let held = rest
            rest = []
            return held.withUnsafeBytes { take($0, into: buffer, byteCount: byteCount) }
        }
        // No allocation of its own: decrypted bytes are never more than the encrypted ones, so both halves suffice.
        let half = min(Self.receivedByteCountMax, byteCount / 2)
        let scratch = UnsafeMutableRawBufferPointer(start: buffer + (byteCount - half), count: half)
        switch receive(into: scratch) {
        case .bytes(let count):
            receivedByteCount &+= count
            state.pointee.keyUpdateCountMax = keyUpdateCountMax + receivedByteCount >> 20
            let received = UnsafeRawBufferPointer(rebasing: scratch[..<count])
            return take(received, into: buffer, byteCount: byteCount - half)
        case .nothing(let step): return step
        }
    }

    private enum Received {
        /// This many bytes. 0 at the peer's end, and before a client's first message.
        case bytes(Int)
        /// Nothing was received, and the read ends with this step.
        case nothing(Step)
    }

    private func receive(into buffer: UnsafeMutableRawBufferPointer) -> Received {
        if state.pointee.isEnded { return .bytes(0) }
        while true {
            let count = recv(state.pointee.descriptor, buffer.baseAddress, buffer.count, 0)
            if count > 0 { return .bytes(count) }
            if count == 0 {
                state.pointee.isEnded = true
                return .bytes(0)
            }
            if errno == EINTR { continue }
            // A client's handshake begins before anything is received.
            if errno == EAGAIN { return isEstablished || context.role == .server ? .nothing(.wantsRead) : .bytes(0) }
            return .nothing(.failed(TLSError("recv: \(String(cString: strerror(errno)))")))
        }
    }

    /// Gives `input` to OpenSSL, and keeps the part that it cannot take now.
    private func take(
        _ input: UnsafeRawBufferPointer, into buffer: UnsafeMutableRawPointer, byteCount: Int
    ) -> Step {
        state.pointee.input = input
        isWriteWanted = false
        defer {
            rest = Array(state.pointee.input)
            state.pointee.input = UnsafeRawBufferPointer(start: nil, count: 0)
            noteRecord()
        }
        if !isEstablished {
            let code = call { SSL_do_handshake(pointer) }
            guard code == 1 else { return unread(failure(code, of: "the handshake failed")) }
            isEstablished = true
        }
        var taken = 0
        repeat {
            var count = 0
            let code = call { SSL_read_ex(pointer, buffer + taken, byteCount - taken, &count) }
            guard code == 1 else {
                let step = unread(failure(code, of: "a record was refused"))
                if taken == 0 { return step }
                // The bytes that were read are delivered first. `wantsRead` is not kept, because it says nothing new.
                if step != .wantsRead { next = step }
                return .bytes(taken)
            }
            taken += count
            // One more call would only return that OpenSSL wants more input: a useless call in each request.
        } while taken < byteCount && (!state.pointee.input.isEmpty || SSL_pending(pointer) > 0)
        return .bytes(taken)
    }

    /// SSL_has_pending(3) is 0 for a record of which only the head has come. Then the state is "RB", which is "read
    /// body" (SSL_rstate_string(3)).
    private func noteRecord() {
        isInRecord = !isBroken && (SSL_has_pending(pointer) == 1 || strcmp(SSL_rstate_string(pointer), "RB") == 0)
    }

    /// Notes that a read has to send something before it goes on, or that nothing more is read.
    private func unread(_ step: Step) -> Step {
        isWriteWanted = step == .wantsWrite
        // What the peer sends after close_notify is ignored (RFC 8446 §6.1). If it were kept, it would be input that
        // waits to be read, and a reader would read for ever.
        if step == .ended { state.pointee.input = UnsafeRawBufferPointer(start: nil, count: 0) }
        return step
    }

    // MARK: Writing

    /// Encrypts and sends as much as the socket takes. Bytes that were offered and not taken must be offered again,
    /// with or without more bytes after them (SSL_write(3), SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER). Only when
    /// `isEstablished`.
    public func write(_ bytes: UnsafeRawBufferPointer) -> Step {
        guard !isBroken, isEstablished else { return .failed(TLSError("the session is not established")) }
        guard !bytes.isEmpty else { return .bytes(0) }
        var count = 0
        let code = call { SSL_write_ex(pointer, bytes.baseAddress, bytes.count, &count) }
        return code == 1 ? .bytes(count) : failure(code, of: "sending failed")
    }

    /// Tells the peer that nothing more will be sent (close_notify), as far as the socket takes it.
    public func sayEnd() {
        guard isEstablished, !isBroken, !hasSaidEnd else { return }
        hasSaidEnd = true
        _ = call { SSL_shutdown(pointer) }
    }

    /// The protocol that both agreed on; nil when the client named none.
    public var applicationProtocol: ApplicationProtocol? {
        var (name, count) = (UnsafePointer<UInt8>?.none, UInt32(0))
        SSL_get0_alpn_selected(pointer, &name, &count)
        let bytes = UnsafeBufferPointer(start: name, count: Int(count))
        return ApplicationProtocol.allCases.first { bytes.elementsEqual($0.rawValue.utf8) }
    }

    // MARK: OpenSSL's outcome

    /// SSL_get_error(3) looks at the thread's error queue, which must be empty before the call.
    private func call(_ body: () -> Int32) -> Int32 {
        ERR_clear_error()
        return body()
    }

    private func failure(_ code: Int32, of what: String) -> Step {
        if state.pointee.isStopped {
            isBroken = true
            return .failed(TLSError("too many KeyUpdates"))
        }
        switch SSL_get_error(pointer, code) {
        case SSL_ERROR_WANT_READ: return .wantsRead
        case SSL_ERROR_WANT_WRITE: return .wantsWrite
        case SSL_ERROR_ZERO_RETURN: return .ended
        case SSL_ERROR_SSL:
            isBroken = true
            if state.pointee.isEnded, ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING {
                ERR_clear_error()
                return .truncated
            }
            return .failed(.last(of: what))
        default:
            isBroken = true
            ERR_clear_error()
            if state.pointee.isEnded { return .truncated }
            return .failed(TLSError("\(what): \(String(cString: strerror(state.pointee.sendError)))"))
        }
    }
}
