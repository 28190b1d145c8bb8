import Glibc

/// A port of 127.0.0.1 that nobody listens on right now.
public func freePort() throws -> UInt16 {
    let (descriptor, port) = boundSocket()
    close(descriptor)
    return port
}

/// Runs `body` with the port of a server on 127.0.0.1 that takes connections and never answers.
public func withSilentServer<Result>(_ body: (UInt16) async throws -> Result) async throws -> Result {
    let (descriptor, port) = boundSocket()
    defer { close(descriptor) }
    listen(descriptor, 16)
    return try await body(port)
}

/// A TCP socket that is bound to a free port of 127.0.0.1. The caller listens on it, and closes it.
public func boundSocket() -> (descriptor: Int32, port: UInt16) {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let port = withUnsafeMutablePointer(to: &address) { pointer in
        let isBound = pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
            bind(descriptor, generic, length) == 0 && getsockname(descriptor, generic, &length) == 0
        }
        precondition(isBound, "no port of loopback: errno \(errno)")
        return UInt16(bigEndian: pointer.pointee.sin_port)
    }
    return (descriptor, port)
}
