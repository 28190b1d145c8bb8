internal import CEpoll
import Glibc

/// Finds the ready sockets of a loop with epoll(7). Belongs to the loop's thread.
final class Poller {
    private static let wakeKey: UInt64 = 0

    private let descriptor: Int32
    private var works: [UInt64: any LoopWork] = [:]
    private var lastKey = wakeKey
    private var buffer = [epoll_news](repeating: epoll_news(), count: EPOLL_NEWS_MAX)

    /// Made on any thread; the loop's thread uses it from then on. `wakeDescriptor` wakes the loop: its events are for
    /// no work.
    init(wokenBy wakeDescriptor: Int32) throws(SystemError) {
        descriptor = epoll_make()
        guard descriptor >= 0 else { throw SystemError(errno) }
        try control(wakeDescriptor, isNew: true, Int16(POLLIN), Self.wakeKey)
    }

    deinit { close(descriptor) }

    /// Watches a socket for `events`, which are those of poll(2), for `work`. Returns the key for the socket's events.
    func watch(_ socket: Int32, events: Int16, for work: any LoopWork) throws(SystemError) -> UInt64 {
        let key = lastKey + 1
        try control(socket, isNew: true, events, key)
        lastKey = key
        works[key] = work
        return key
    }

    /// Watches a socket for other events from now on.
    func change(_ socket: Int32, events: Int16, key: UInt64) throws(SystemError) {
        try control(socket, isNew: false, events, key)
    }

    /// Called before the socket is closed. Events of the socket that were collected already are dropped.
    func unwatch(_ socket: Int32, key: UInt64) {
        works[key] = nil
        _ = epoll_unwatch(descriptor, socket)
    }

    private func control(_ socket: Int32, isNew: Bool, _ events: Int16, _ key: UInt64) throws(SystemError) {
        guard epoll_watch(descriptor, socket, isNew ? 1 : 0, UInt32(UInt16(bitPattern: events)), key) == 0 else {
            throw SystemError(errno)
        }
    }

    /// Waits for events, and calls `body` for each ready socket with its work, its key and the events of poll(2). The
    /// work is nil for the descriptor that wakes the loop. -1: waits for ever.
    func wait(milliseconds: Int32, _ body: ((any LoopWork)?, UInt64, Int16) -> Void) {
        let count = epoll_collect(descriptor, &buffer, milliseconds)
        // An interrupted wait has no events: the loop looks at everything else and waits again.
        guard count > 0 else { return }
        for index in 0..<Int(count) {
            let news = buffer[index]
            let work = works[news.key]
            guard work != nil || news.key == Self.wakeKey else { continue }
            body(work, news.key, Int16(truncatingIfNeeded: news.events))
        }
    }
}
