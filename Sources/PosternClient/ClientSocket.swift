import Base
import Glibc

/// The system calls on a client's TCP connection; its one owner closes it once. EINTR is retried.
struct ClientSocket {
    enum Result {
        /// This many bytes; 0 from a read is the peer's end.
        case bytes(Int)
        case wouldBlock
        case failed(errno: Int32)
    }

    let descriptor: Int32

    /// Starts to connect. The socket becomes writable at the end (connect(2), EINPROGRESS); `connectError` has the
    /// result.
    init(connectingTo address: ResolvedAddress) throws(SystemError) {
        descriptor = socket(address.family, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw SystemError(errno) }
        makeNonBlocking(descriptor)
        var on: Int32 = 1
        _ = setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
        let code = address.bytes.withUnsafeBytes { raw in
            connect(descriptor, raw.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t(raw.count))
        }
        guard code == 0 || errno == EINPROGRESS || errno == EINTR else {
            let failure = SystemError(errno)
            Glibc.close(descriptor)
            throw failure
        }
    }

    /// Takes a socket that is connected already.
    init(owning descriptor: Int32) {
        self.descriptor = descriptor
        makeNonBlocking(descriptor)
    }

    func close() { _ = Glibc.close(descriptor) }

    /// The error of connecting. Nil: connecting succeeded.
    var connectError: SystemError? {
        var code: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        _ = getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length)
        return code == 0 ? nil : SystemError(code)
    }

    func read(into buffer: UnsafeMutableRawPointer, byteCount: Int) -> Result {
        Self.result { recv(descriptor, buffer, byteCount, 0) }
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> Result {
        Self.result { send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL)) }
    }

    /// Makes a system call that returns a number of bytes, again if a signal interrupts it.
    @inline(__always)
    private static func result(of call: () -> Int) -> Result {
        while true {
            let count = call()
            if count >= 0 { return .bytes(count) }
            let code = errno
            if code != EINTR { return code == EAGAIN ? .wouldBlock : .failed(errno: code) }
        }
    }
}

/// Also keeps the descriptor from programs that this process starts.
func makeNonBlocking(_ descriptor: Int32) {
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
}
