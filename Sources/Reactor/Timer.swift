public import Base
import CEvent
import Glibc

/// A one-shot timer on a loop that can be armed again and again.
///
/// Used on the loop's thread only (or while the loop does not run). Moving the deadline later costs a comparison: the
/// kernel's timer stays, and if it fires early it is set again. Resolution about a millisecond, never early.
/// The timer retains `handler` for its whole life: capture the owner weakly or unowned.
public final class Timer {
    public let loop: EventLoop
    /// When the handler will run; nil if the timer is not armed.
    public private(set) var deadline: Instant?

    private let event: UnsafeMutablePointer<event>
    private let handler: () -> Void
    /// The time for which libevent waits: `deadline`, or an earlier time, while the timer is armed.
    private var scheduled: Instant?

    public init(on loop: EventLoop, handler: @escaping () -> Void) {
        self.loop = loop
        self.handler = handler
        self.event = .allocate(capacity: 1)
        // Unretained: the event is deleted before the timer is freed (`deinit`).
        event_assign(
            event, loop.base, -1, 0,
            { _, _, this in Unmanaged<Timer>.fromOpaque(this!).takeUnretainedValue().fire() },
            Unmanaged.passUnretained(self).toOpaque())
    }

    deinit {
        if scheduled != nil {
            precondition(loop.mayTouchBase, "a Timer was dropped off its loop without cancel()")
            event_del(event)
        }
        event.deallocate()
    }

    /// Runs the handler after `delay`. Replaces an earlier deadline.
    public func arm(after delay: Duration) { arm(at: Instant.now.advanced(by: delay)) }

    /// Runs the handler at `deadline`, or in the next turn if `deadline` has passed.
    public func arm(at deadline: Instant) {
        loop.checkOwner()
        self.deadline = deadline
        if let scheduled, scheduled <= deadline { return }
        schedule(deadline, now: .now)
    }

    /// Disarms the timer, which can be armed again. A handler that is due and has not run yet does not run.
    public func cancel() {
        loop.checkOwner()
        deadline = nil
        if scheduled.take() != nil { event_del(event) }
    }

    private func schedule(_ deadline: Instant, now: Instant) {
        scheduled = deadline
        let nanoseconds = max(0, deadline.nanoseconds(since: now))
        let microseconds = nanoseconds / 1_000 + 1
        var delay = timeval(tv_sec: Int(microseconds / 1_000_000), tv_usec: Int(microseconds % 1_000_000))
        event_add(event, &delay)
    }

    /// libevent's clock is coarse and read once per turn, so it may fire some milliseconds early.
    private func fire() {
        scheduled = nil
        guard let deadline else { return }
        let now = Instant.now
        if now < deadline {
            schedule(deadline, now: now)
        } else {
            self.deadline = nil
            handler()
        }
    }
}
