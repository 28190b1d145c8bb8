import Base
import Synchronization

/// The threads on which channels do their work. All channels of a process share one, unless their options say
/// otherwise.
///
/// A channel stays on the thread that it was given when it was made; channels are dealt out in turn. One thread is
/// enough for most programs: it only moves bytes, and encrypts them. The threads end when the `ChannelLoops` and all
/// channels on them are gone; the thread of `shared` never ends.
///
/// ```swift
/// var options = ChannelOptions()
/// options.loops = ChannelLoops(threadCount: 2)
/// let channel = try Channel(address: "127.0.0.1:7400", credentials: .apiKey(apiKey), options: options)
/// print(channel.options.loops.threadCount)
/// ```
public final class ChannelLoops: Sendable {
    /// The one thread of all channels whose options name no other loops. It starts with the first such channel.
    public static let shared = ChannelLoops(threadCount: 1)

    /// How many threads there are at most: a thread starts with the first channel that it is given.
    public let threadCount: Int
    private let state = Mutex(State())

    private struct State {
        var inboxes: [LoopInbox] = []
        /// The place in `inboxes` of the next channel's loop, if that has started.
        var next = 0
    }

    /// Makes loops with so many threads: one at least, 64 at most.
    public init(threadCount: Int) { self.threadCount = min(max(threadCount, 1), Self.threadsMax) }

    deinit { for inbox in state.withLock({ $0.inboxes }) { inbox.end() } }

    private static let threadsMax = 64

    /// The loop for the next channel. Throws CONNECTION_FAILED if the system has no room for the first thread or its
    /// descriptors. If it has no room for a later thread, the present threads take turns.
    func next() throws(Failure) -> LoopInbox {
        try state.withLock { state throws(Failure) in
            if state.next == state.inboxes.count {
                do throws(Failure) {
                    state.inboxes.append(try Self.start())
                } catch {
                    if state.inboxes.isEmpty { throw error }
                    state.next = 0
                }
            }
            defer { state.next = (state.next + 1) % threadCount }
            return state.inboxes[state.next]
        }
    }

    private static func start() throws(Failure) -> LoopInbox {
        do {
            let inbox = try LoopInbox()
            // Proof: this function does not touch it any more; only the new thread does.
            nonisolated(unsafe) let poller = try Poller(wokenBy: inbox.wakeDescriptor)
            // Detached, because the last reference to the loops may be dropped on one of their own threads.
            try OSThread.startDetached(name: "postern-client") { ChannelLoop(inbox, poller).run() }
            return inbox
        } catch {
            throw .connectionFailed("The system gives the channel no thread or no descriptors: \(error).")
        }
    }
}
