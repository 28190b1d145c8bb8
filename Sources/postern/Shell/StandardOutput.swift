import Glibc
import Synchronization

/// Standard output of the process. After the first write that fails nothing more is written, because the output would
/// have a gap.
final class StandardOutput: Sendable {
    private let descriptor: Int32
    private let failure = Mutex<Int32?>(nil)

    init(descriptor: Int32) { self.descriptor = descriptor }

    /// The `errno` of the write that failed. Nil: everything was written.
    var errorCode: Int32? { failure.withLock { $0 } }

    func write(_ bytes: [UInt8]) {
        failure.withLock { failure in
            if failure == nil { failure = Self.writeAll(bytes, to: descriptor) }
        }
    }

    /// Returns the `errno` of a failure. Nil: all bytes were written.
    @discardableResult
    static func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Int32? {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                rest = rest.dropFirst(count)
                continue
            }
            guard count < 0 else { return EIO }
            switch errno {
            case EINTR: break
            case EAGAIN:
                // Another process that has the same pipe or terminal may have made it non-blocking.
                var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = poll(&entry, 1, -1)
            case let code: return code
            }
        }
        return nil
    }
}

/// Thrown when standard output has failed and a command stops, because its output goes nowhere. The tool says why.
struct OutputFailed: Error {}
