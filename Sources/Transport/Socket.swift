import Base
import Glibc

/// A connected stream socket and the system calls on it: the plain `ByteStream`.
///
/// EINTR is retried, EAGAIN is a value, EBADF and EFAULT are our own mistakes and trap.
struct Socket: ByteStream {
    let descriptor: Int32

    init(owning descriptor: Int32) { self.descriptor = descriptor }

    func close() { _ = Glibc.close(descriptor) }

    func closeForWriting() { _ = shutdown(descriptor, Int32(SHUT_WR)) }

    /// The corresponding C function is `recv`.
    func read(into buffer: UnsafeMutableRawPointer, byteCount: Int) -> ByteStreamResult {
        Self.result { recv(descriptor, buffer, byteCount, 0) }
    }

    /// Reads the next byte without removing it.
    func peek(into buffer: UnsafeMutableRawPointer) -> ByteStreamResult {
        Self.result { recv(descriptor, buffer, 1, Int32(MSG_PEEK)) }
    }

    /// The corresponding C function is `send`, without SIGPIPE.
    func write(_ bytes: UnsafeRawBufferPointer) -> ByteStreamResult {
        Self.result { send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL)) }
    }

    /// Makes a system call that returns a number of bytes, again if a signal interrupts it.
    @inline(__always)
    private static func result(of call: () -> Int) -> ByteStreamResult {
        while true {
            let count = call()
            if count >= 0 { return .bytes(count) }
            let code = errno
            if code == EINTR { continue }
            precondition(code != EBADF && code != EFAULT, "socket used after close")
            return code == EAGAIN ? .wouldBlock : .failed(errno: code)
        }
    }

    static func makeNonBlocking(_ descriptor: Int32) {
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    /// The most bytes that the kernel buffers for the peer beyond those on their way.
    private static let unsentByteCountMax: Int32 = 128 * 1024

    /// No Nagle delay (answers are written once per turn anyway), and probes that find a vanished peer in 2 minutes.
    static func configure(_ descriptor: Int32) {
        makeNonBlocking(descriptor)
        set(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        set(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1)
        set(descriptor, Int32(IPPROTO_TCP), TCP_KEEPIDLE, 60)
        set(descriptor, Int32(IPPROTO_TCP), TCP_KEEPINTVL, 15)
        set(descriptor, Int32(IPPROTO_TCP), TCP_KEEPCNT, 4)
        // Bytes that the peer has no room for stay in this process, where they are counted; by itself the kernel takes
        // 4 MiB.
        set(descriptor, Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, unsentByteCountMax)
    }

    static func set(_ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32) {
        var value = value
        _ = setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }
}
