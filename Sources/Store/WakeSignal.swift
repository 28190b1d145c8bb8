import Base
import Glibc

/// Wakes one sleeping thread, which may give up at a time of the monotonic clock.
///
/// A signal that comes before the wait is kept. Unlike those of a `Semaphore`, several signals count as one.
final class WakeSignal: @unchecked Sendable {
    // Unchecked: `isSignalled` is used under `mutex` only; the pointers never change.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var isSignalled = false

    init() {
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    func signal() {
        pthread_mutex_lock(mutex)
        isSignalled = true
        pthread_cond_signal(condition)
        pthread_mutex_unlock(mutex)
    }

    /// False if `deadline` passed without a signal.
    @available(*, noasync, message: "blocks the thread")
    func wait(until deadline: Instant?) -> Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while !isSignalled {
            guard let deadline else {
                pthread_cond_wait(condition, mutex)
                continue
            }
            let nanoseconds = Int(deadline.nanoseconds)
            var time = timespec(tv_sec: nanoseconds / 1_000_000_000, tv_nsec: nanoseconds % 1_000_000_000)
            if pthread_cond_timedwait(condition, mutex, &time) == ETIMEDOUT, !isSignalled { return false }
        }
        isSignalled = false
        return true
    }
}
