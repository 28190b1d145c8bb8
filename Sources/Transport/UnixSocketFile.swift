import Base
import Glibc

/// The file by which clients find a Unix domain socket. A server that was killed leaves it behind, and the next one has
/// to remove it, but never the file of a running server.
///
/// Two checks tell whether a server runs: the lock on `<path>.lock`, which a posternd holds for as long as it runs, and
/// a connection to the socket, which another program may answer.
struct UnixSocketFile: Sendable {
    private let path: String
    private let lock: Int32
    private let device: dev_t
    private let node: ino_t

    /// Binds `descriptor` to the path. Throws EADDRINUSE if the path belongs to a running program, and EEXIST if there
    /// is something else than a socket.
    init(binding descriptor: Int32, to address: SocketAddress, path: String, mode: mode_t) throws(ListenError) {
        self.path = path
        let lock = try Self.lock(path, address)
        do throws(ListenError) {
            try Self.removeStale(path, address)
            let code = address.withSockaddr { bind(descriptor, $0, $1) == 0 ? 0 : errno } ?? EINVAL
            guard code == 0 else { throw ListenError(address: address, code: code) }
            // Nobody can connect before listen(2).
            var status = stat()
            guard chmod(path, mode) == 0, lstat(path, &status) == 0 else {
                throw ListenError(address: address, code: errno)
            }
            (self.lock, device, node) = (lock, status.st_dev, status.st_ino)
        } catch {
            close(lock)
            throw error
        }
    }

    /// Removes the file, unless it belongs to another server by now. The lock's file stays: if it were removed, two
    /// servers could hold locks on two files of this name.
    func remove() {
        var status = stat()
        if lstat(path, &status) == 0, status.st_dev == device, status.st_ino == node { unlink(path) }
        close(lock)
    }

    private static func lock(_ path: String, _ address: SocketAddress) throws(ListenError) -> Int32 {
        let file = open(path + ".lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw ListenError(address: address, code: errno) }
        while flock(file, LOCK_EX | LOCK_NB) != 0 {
            let code = errno
            if code == EINTR { continue }
            close(file)
            throw ListenError(address: address, code: code == EWOULDBLOCK ? EADDRINUSE : code)
        }
        return file
    }

    /// Called only with the lock.
    private static func removeStale(_ path: String, _ address: SocketAddress) throws(ListenError) {
        var status = stat()
        guard lstat(path, &status) == 0 else {
            guard errno == ENOENT else { throw ListenError(address: address, code: errno) }
            return
        }
        guard status.st_mode & S_IFMT == S_IFSOCK else { throw ListenError(address: address, code: EEXIST) }
        guard isStale(address) else { throw ListenError(address: address, code: EADDRINUSE) }
        guard unlink(path) == 0 || errno == ENOENT else { throw ListenError(address: address, code: errno) }
    }

    /// Whether nobody listens: connect(2) fails with ECONNREFUSED. With any other result, a server may be running.
    private static func isStale(_ address: SocketAddress) -> Bool {
        // Proof: constants of the system's headers.
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let descriptor = socket(AF_UNIX, kind, 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return address.withSockaddr { connect(descriptor, $0, $1) != 0 && errno == ECONNREFUSED } ?? false
    }
}
