import Base
import Glibc

/// A socket that is bound and listens; its one owner closes it once.
struct ListeningSocket: Sendable {
    let descriptor: Int32
    /// The address with the port that was bound: the system's choice when 0 was asked for.
    let address: SocketAddress
    private let file: UnixSocketFile?

    /// `mode`: who may connect to a Unix domain socket.
    init(_ wanted: SocketAddress, backlog: Int32, mode: mode_t = 0o600) throws(ListenError) {
        let family = wanted.path != nil ? AF_UNIX : wanted.host.contains(":") ? AF_INET6 : AF_INET
        let descriptor = socket(family, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw ListenError(address: wanted, code: errno) }
        Socket.makeNonBlocking(descriptor)
        do throws(ListenError) {
            file = try Self.bind(descriptor, wanted, mode)
        } catch {
            _ = Glibc.close(descriptor)
            throw error
        }
        guard listen(descriptor, backlog) == 0 else {
            let code = errno
            _ = Glibc.close(descriptor)
            file?.remove()
            throw ListenError(address: wanted, code: code)
        }
        self.descriptor = descriptor
        self.address =
            wanted.path != nil
            ? wanted : SocketAddress(host: wanted.host, port: Self.boundPort(descriptor)) ?? wanted
    }

    func close() {
        _ = Glibc.close(descriptor)
        file?.remove()
    }

    /// Accepts connections that wait, and calls `accepted` with each descriptor. Ends when none waits, when `mayAccept`
    /// returns false, and after `countMax`, so that a flood of connections does not keep the others waiting. Returns
    /// the error of accept(2) if another one cannot be accepted, for example EMFILE.
    func acceptWaiting(countMax: Int, while mayAccept: () -> Bool, _ accepted: (Int32) -> Void) -> Int32? {
        for _ in 0..<countMax {
            guard mayAccept() else { return nil }
            let connection = accept(descriptor, nil, nil)
            if connection >= 0 {
                accepted(connection)
                continue
            }
            switch errno {
            case EINTR, ECONNABORTED: continue
            case EAGAIN: return nil
            case let code: return code
            }
        }
        return nil
    }

    private static func bind(
        _ descriptor: Int32, _ wanted: SocketAddress, _ mode: mode_t
    ) throws(ListenError) -> UnixSocketFile? {
        if let path = wanted.path {
            return try UnixSocketFile(binding: descriptor, to: wanted, path: path, mode: mode)
        }
        Socket.set(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
        let code = wanted.withSockaddr { Glibc.bind(descriptor, $0, $1) == 0 ? 0 : errno } ?? EINVAL
        guard code == 0 else { throw ListenError(address: wanted, code: code) }
        return nil
    }

    private static func boundPort(_ descriptor: Int32) -> UInt16 {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                guard getsockname(descriptor, address, &length) == 0 else { return 0 }
                // sin_port and sin6_port lie at the same place (POSIX leaves it open, Linux does not).
                return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                    UInt16(bigEndian: $0.pointee.sin_port)
                }
            }
        }
    }
}
