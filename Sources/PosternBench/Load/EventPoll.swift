// epoll(7), one per driver. Swift's Glibc module leaves <sys/epoll.h> out, so that the functions are looked up in the
// process by name, and epoll_event is laid out by hand: events (32 bits), then data (64 bits), packed on x86-64
// only.

import Glibc

/// Waits for many sockets at once, level-triggered; the owner gives each socket a number. One owner, not thread-safe.
struct EventPoll: ~Copyable {
    private typealias Create = @convention(c) (Int32) -> Int32
    private typealias Control = @convention(c) (Int32, Int32, Int32, UnsafeMutableRawPointer?) -> Int32
    private typealias Wait = @convention(c) (Int32, UnsafeMutableRawPointer, Int32, Int32) -> Int32
    private typealias WaitExactly =
        @convention(c) (
            Int32, UnsafeMutableRawPointer, Int32, UnsafePointer<timespec>, UnsafeRawPointer?
        ) -> Int32

    /// EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD.
    private enum Change: Int32 {
        case add = 1
        case delete = 2
        case modify = 3
    }

    private enum Layout {
        #if arch(x86_64)
            static let byteCount = 12
            static let dataOffset = 4
        #else
            static let byteCount = 16
            static let dataOffset = 8
        #endif
        static let readable: UInt32 = 0x001
        static let writable: UInt32 = 0x004
    }

    private static let closeOnExec: Int32 = 0o2_000_000
    private static let eventsMax: Int32 = 256

    private let descriptor: Int32
    private let control: Control
    private let waitForEvents: Wait
    /// Nil before glibc 2.35.
    private let waitExactly: WaitExactly?
    private let events: UnsafeMutableRawPointer

    init() throws(BenchError) {
        guard let create = dlsym(nil, "epoll_create1"), let control = dlsym(nil, "epoll_ctl"),
            let wait = dlsym(nil, "epoll_wait")
        else { throw BenchError(.failed, "this C library has no epoll") }
        // The types are those of epoll_create1(2), epoll_ctl(2), epoll_wait(2) and epoll_pwait2(2).
        let descriptor = unsafeBitCast(create, to: Create.self)(Self.closeOnExec)
        guard descriptor >= 0 else { throw .system(.failed, "epoll_create1") }
        self.descriptor = descriptor
        self.control = unsafeBitCast(control, to: Control.self)
        waitForEvents = unsafeBitCast(wait, to: Wait.self)
        waitExactly = dlsym(nil, "epoll_pwait2").map { unsafeBitCast($0, to: WaitExactly.self) }
        events = .allocate(byteCount: Int(Self.eventsMax) * Layout.byteCount, alignment: 8)
    }

    deinit {
        close(descriptor)
        events.deallocate()
    }

    func add(_ socket: Int32, number: Int) throws(BenchError) { try change(.add, socket, number, Layout.readable) }

    func remove(_ socket: Int32) { _ = control(descriptor, Change.delete.rawValue, socket, nil) }

    /// With `forWriting`, room for output wakes the owner as input does.
    func watch(_ socket: Int32, number: Int, forWriting: Bool) throws(BenchError) {
        try change(.modify, socket, number, Layout.readable | (forWriting ? Layout.writable : 0))
    }

    /// Waits. Returns how many sockets are ready, 0 after the time is up; `number(at:)` says which.
    func wait(milliseconds: Int32) throws(BenchError) -> Int {
        let count = waitForEvents(descriptor, events, Self.eventsMax, milliseconds)
        guard count >= 0 || errno == EINTR else { throw .system(.failed, "epoll_wait") }
        return max(0, Int(count))
    }

    /// Waits exactly to the microsecond if the system can; otherwise it wakes up to a millisecond late.
    func wait(nanoseconds: Int64) throws(BenchError) -> Int {
        let left = max(0, nanoseconds)
        guard let waitExactly else { return try wait(milliseconds: Int32(min(left / 1_000_000 + 1, 1_000))) }
        var time = timespec(tv_sec: Int(left / 1_000_000_000), tv_nsec: Int(left % 1_000_000_000))
        let count = waitExactly(descriptor, events, Self.eventsMax, &time, nil)
        // A kernel before 5.11 has no such call.
        if count < 0, errno == ENOSYS { return try wait(milliseconds: 1) }
        guard count >= 0 || errno == EINTR else { throw .system(.failed, "epoll_pwait2") }
        return max(0, Int(count))
    }

    func number(at index: Int) -> Int {
        Int(events.loadUnaligned(fromByteOffset: index * Layout.byteCount + Layout.dataOffset, as: UInt64.self))
    }

    private func change(_ change: Change, _ socket: Int32, _ number: Int, _ wanted: UInt32) throws(BenchError) {
        let failed = withUnsafeTemporaryAllocation(byteCount: Layout.byteCount, alignment: 8) { event in
            event.storeBytes(of: wanted, as: UInt32.self)
            event.storeBytes(of: UInt64(number), toByteOffset: Layout.dataOffset, as: UInt64.self)
            return control(descriptor, change.rawValue, socket, event.baseAddress) != 0
        }
        if failed { throw .system(.failed, "epoll_ctl") }
    }
}
