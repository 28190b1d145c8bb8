import Base
import Synchronization

/// The threads on which channels do their work. All channels of a process share one, unless their options say
/// otherwise.
///
/// A channel stays on the thread that it was given when it was made; channels are dealt out in turn. One thread is
/// enough for most programs: it only moves bytes, and encrypts them. The threads end when neither the `ChannelLoops`
/// nor a channel on them is there any more; that of `shared` never does.
///
/// ```swift
/// var options = ChannelOptions()
/// options.loops = ChannelLoops(threadCount: 2)
/// let channel = try Channel(address: "127.0.0.1:7400", credentials: .apiKey(apiKey), options: options)
/// print(channel.options.loops.threadCount)
/// ```
public final class ChannelLoops: Sendable {
    /// The one thread of all channels whose options name no other loops. It begins with the first of them.
    public static let shared = ChannelLoops(threadCount: 1)

    /// How many threads there are.
    public let threadCount: Int
    private let inboxes: [LoopInbox]
    private let nextIndex = Mutex(0)

    /// Starts the threads: one at least, 64 at most.
    public init(threadCount: Int) {
        self.threadCount = min(max(threadCount, 1), Self.threadsMax)
        self.inboxes = (0..<self.threadCount).map { _ in LoopInbox() }
        for inbox in inboxes {
            // Detached, for the last reference to the loops may go on one of their own threads.
            OSThread.startDetached(name: "postern-client") { ChannelLoop(inbox).run() }
        }
    }

    deinit { for inbox in inboxes { inbox.end() } }

    private static let threadsMax = 64

    /// The loop for the next channel.
    func next() -> LoopInbox {
        let index = nextIndex.withLock { next in
            defer { next = (next + 1) % inboxes.count }
            return next
        }
        return inboxes[index]
    }
}
