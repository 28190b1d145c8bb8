internal import CThread
import Glibc

/// The share of the processors that the calling thread gets.
///
/// It is only a request: if the system grants less, the thread runs on as before.
public enum ThreadPriority: Sendable, Equatable {
    /// setpriority(2), 0...19: each step takes a tenth less of a processor that others want too.
    case niceness(Int32)
    /// SCHED_IDLE of sched(7): runs while no other thread wants the processor, and gives way at once.
    case idle

    /// Applies the priority. Where the system refuses the scheduling policy itself, as some containers do, a nice value
    /// takes its place.
    public func applyToCurrentThread() {
        switch self {
        case .niceness(let value):
            // Linux keeps a nice value per thread, and 0 means the calling one (setpriority(2), "C library/kernel
            // differences"). It fails only for a priority above the present one (EACCES).
            if value > 0 { _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, value) }
        case .idle:
            ThreadPriority.niceness(19).applyToCurrentThread()
            var parameters = sched_param()
            _ = sched_setscheduler(0, THREAD_POLICY_IDLE, &parameters)
        }
    }

    /// Shortens the calling thread's turns: a thread with short turns that wakes up runs before a thread with longer
    /// turns, even in the middle of that thread's turn. It is for threads that work for microseconds while others wait.
    /// `nanoseconds` are 100,000 to 100,000,000.
    public static func takeShortTurns(nanoseconds: UInt64 = 100_000) { _ = thread_set_turn(nanoseconds) }
}
