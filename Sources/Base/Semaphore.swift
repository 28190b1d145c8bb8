internal import CThread
import Glibc

/// A counting semaphore for handing work to an OSThread. The C type is `sem_t`.
public final class Semaphore: @unchecked Sendable {
    // Unchecked: sem_post(3) and sem_wait(3) are thread-safe on one semaphore; the pointer never changes.
    private let storage: UnsafeMutablePointer<sem_t>

    public init() {
        storage = .allocate(capacity: 1)
        sem_init(storage, 0, 0)
    }

    deinit {
        sem_destroy(storage)
        storage.deallocate()
    }

    public func signal() { sem_post(storage) }

    @available(*, noasync, message: "blocks the thread")
    public func wait() {
        HeldWakeups.giveBeforeSleep()
        while sem_wait(storage) != 0 {}
    }

    /// Waits at most this long, and returns false if no signal came. Setting the wall clock makes no difference.
    @available(*, noasync, message: "blocks the thread")
    public func wait(for duration: Duration) -> Bool {
        HeldWakeups.giveBeforeSleep()
        let nanoseconds = Instant.now.advanced(by: duration).nanoseconds
        var until = timespec(
            tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
        while sem_clockwait(storage, CLOCK_MONOTONIC, &until) != 0 {
            if errno != EINTR { return false }
        }
        return true
    }

    /// Takes a signal that is there already; false when there is none.
    public func takeSignal() -> Bool { sem_trywait(storage) == 0 }
}
