import Base
import Glibc

/// A file descriptor that becomes readable when a thread must wake up, for a thread that sleeps in poll(2) on other
/// descriptors as well. Signals that come before the wait are kept; several signals count as one.
final class EventDescriptor: Sendable {
    let readEnd: Int32
    private let writeEnd: Int32

    init() throws(StoreError) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw StoreError(code: errno, operation: "pipe") }
        (readEnd, writeEnd) = (ends[0], ends[1])
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
    }

    deinit {
        close(readEnd)
        close(writeEnd)
    }

    /// A full pipe already has a signal in it, so a failed write does not matter.
    func signal() {
        var byte: UInt8 = 1
        _ = write(writeEnd, &byte, 1)
    }

    @available(*, noasync, message: "blocks the thread")
    func sleep(until deadline: Instant) {
        var waited = pollfd(fd: readEnd, events: Int16(POLLIN), revents: 0)
        let milliseconds = max(0, deadline.nanoseconds(since: .now) / 1_000_000)
        _ = poll(&waited, 1, Int32(clamping: milliseconds + 1))
        clear()
    }

    func clear() {
        withUnsafeTemporaryAllocation(byteCount: 256, alignment: 1) { scratch in
            while let start = scratch.baseAddress, read(readEnd, start, scratch.count) > 0 {}
        }
    }
}
