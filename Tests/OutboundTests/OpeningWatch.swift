import Glibc
import Testing

/// Sees whether anybody opens a file, by inotify(7).
final class OpeningWatch {
    private let descriptor: Int32

    init(_ path: String) throws {
        descriptor = inotify_init()
        try #require(descriptor >= 0)
        try #require(fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0)
        try #require(inotify_add_watch(descriptor, path, UInt32(IN_OPEN)) >= 0)
    }

    deinit { close(descriptor) }

    /// Whether the file was opened since the last look.
    func wasOpened() -> Bool {
        var events = [UInt8](repeating: 0, count: 4_096)
        return read(descriptor, &events, events.count) > 0
    }
}
