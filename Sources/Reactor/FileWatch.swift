import CEvent

/// An object that is called when a watched descriptor is ready. Calls come on the loop's thread and are
/// level-triggered: they repeat every turn until the cause is gone or the interest is switched off.
public protocol SocketEvents: AnyObject {
    /// There is something to read, the peer closed, or the socket failed: read(2) tells.
    func socketIsReadable()
    /// There is room to write, or the socket failed: write(2) tells.
    func socketIsWritable()
}

/// Interest in one descriptor's readiness on one loop.
///
/// Used on the loop's thread only (or while the loop does not run). The watch retains its handler, and a handler
/// usually retains its watch: `cancel()` ends that, also from within the handler. Nothing is allocated per event.
///
/// Cancel before close(2). libevent removes a deleted event from its list of active events (event_del, event.c), so a
/// cancelled watch is never called again, and a later watch on the same number gets only events of its own.
public final class FileWatch {
    public let loop: EventLoop
    public let fileDescriptor: Int32
    public private(set) var isReading = false
    public private(set) var isWriting = false

    private let readEvent: UnsafeMutablePointer<event>
    private let writeEvent: UnsafeMutablePointer<event>
    private var handler: (any SocketEvents)?

    /// Starts without any interest. `fileDescriptor` is borrowed: the owner closes it, after `cancel()`.
    public init(on loop: EventLoop, fileDescriptor: Int32, handler: any SocketEvents) {
        precondition(fileDescriptor >= 0, "no descriptor")
        self.loop = loop
        self.fileDescriptor = fileDescriptor
        self.handler = handler
        self.readEvent = .allocate(capacity: 1)
        self.writeEvent = .allocate(capacity: 1)
        // Unretained: both events are deleted before the watch is freed (`deinit`).
        let this = Unmanaged.passUnretained(self).toOpaque()
        event_assign(
            readEvent, loop.base, fileDescriptor, Int16(EV_READ) | Int16(EV_PERSIST),
            { _, _, this in
                Unmanaged<FileWatch>.fromOpaque(this!).takeUnretainedValue().handler?.socketIsReadable()
            }, this)
        event_assign(
            writeEvent, loop.base, fileDescriptor, Int16(EV_WRITE) | Int16(EV_PERSIST),
            { _, _, this in
                Unmanaged<FileWatch>.fromOpaque(this!).takeUnretainedValue().handler?.socketIsWritable()
            }, this)
    }

    deinit {
        if isReading || isWriting {
            precondition(loop.mayTouchBase, "a FileWatch was dropped off its loop without cancel()")
            event_del(readEvent)
            event_del(writeEvent)
        }
        readEvent.deallocate()
        writeEvent.deallocate()
    }

    /// Switches the read interest: one epoll_ctl(2) if it changes, nothing otherwise. Without effect after `cancel()`.
    public func setReading(_ isOn: Bool) {
        loop.checkOwner()
        guard isOn != isReading, handler != nil else { return }
        isReading = isOn
        set(readEvent, isOn)
    }

    /// Switches the write interest, as `setReading`: keep it on only while output waits for room, else it calls every
    /// turn.
    public func setWriting(_ isOn: Bool) {
        loop.checkOwner()
        guard isOn != isWriting, handler != nil else { return }
        isWriting = isOn
        set(writeEvent, isOn)
    }

    /// Ends all interest for good and releases the handler. A second call does nothing.
    public func cancel() {
        setReading(false)
        setWriting(false)
        handler = nil
    }

    private func set(_ event: UnsafeMutablePointer<event>, _ isOn: Bool) {
        let code = isOn ? event_add(event, nil) : event_del(event)
        // epoll refuses a descriptor that it cannot watch (a regular file) or that was closed before: our own mistakes.
        precondition(code == 0, "descriptor \(fileDescriptor) cannot be watched")
    }
}
