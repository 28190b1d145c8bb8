import CEvent
import Glibc

/// Calls a handler on a loop when the process gets one of the signals.
///
/// No signal is blocked: libevent's handler runs on any thread that the kernel picks, and writes the number into a
/// socket that the loop reads. libevent serves signals on one base per process (evsignal_new, event.h), so all watches
/// must be on the same loop. Used on the loop's thread only (or while the loop does not run).
public final class SignalWatch {
    public let loop: EventLoop
    private let events: UnsafeMutableBufferPointer<event>
    private let handler: (Int32) -> Void
    private var isActive = true

    /// Watches at once, replacing the signals' own actions; `cancel()` restores them. The watch retains `handler`.
    public init(on loop: EventLoop, signals: [Int32], handler: @escaping (Int32) -> Void) {
        loop.checkOwner()
        self.loop = loop
        self.handler = handler
        self.events = .allocate(capacity: signals.count)
        // Unretained: the events are deleted before the watch is freed (`deinit`).
        let this = Unmanaged.passUnretained(self).toOpaque()
        for (index, signal) in signals.enumerated() {
            let event = events.baseAddress! + index
            event_assign(
                event, loop.base, signal, Int16(EV_SIGNAL) | Int16(EV_PERSIST),
                { signal, _, this in Unmanaged<SignalWatch>.fromOpaque(this!).takeUnretainedValue().handler(signal) },
                this)
            let code = event_add(event, nil)
            precondition(code == 0, "signal \(signal) cannot be watched")
        }
    }

    deinit {
        if isActive {
            precondition(loop.mayTouchBase, "a SignalWatch was dropped off its loop without cancel()")
            deleteEvents()
        }
        events.deallocate()
    }

    /// Stops watching and restores the former actions of the signals. A second call does nothing.
    public func cancel() {
        loop.checkOwner()
        guard isActive else { return }
        isActive = false
        deleteEvents()
    }

    /// Makes a write to a closed socket an error (EPIPE) instead of the end of the process. Called once, at the start.
    public static func ignoreBrokenPipes() { signal(SIGPIPE, SIG_IGN) }

    private func deleteEvents() {
        for index in events.indices { event_del(events.baseAddress! + index) }
    }
}
