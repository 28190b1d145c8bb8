import Base
import Messages
import Synchronization
import Wire

/// The commands of a channel's callers, in order. Any thread posts; the thread of the channel's loop takes.
///
/// Bounded by the number of callers: each waits for its call, its message or its stream's window.
final class Mailbox: LoopMember {
    enum Command: Sendable {
        case start(Call)
        /// The caller gave up.
        case cancel(Call)
        case send(Call, any Message, Promise<Void>)
        case finishSending(Call)
        /// The reader took a message of this size.
        case consumed(Call, payloadByteCount: Int)
        /// A worker has finished a preparation for connecting.
        case prepared(Int, Preparation.Result)
    }

    private struct State {
        var commands: [Command] = []
        /// The mailbox is in the loop's inbox.
        var isListed = false
        var isClosed = false
    }

    let servers: [ServerAddress]
    /// Nil: the channel makes TCP connections to the servers.
    let transport: ChannelTransport?
    let authorization: Text
    let options: ChannelOptions
    /// Completed when the channel is closed and every call is settled.
    let ended = Promise<Void>()
    private let state = Mutex(State())
    private let inbox: LoopInbox
    private let work: @Sendable (Mailbox, Poller) -> any LoopWork

    init(
        servers: [ServerAddress], transport: ChannelTransport? = nil, authorization: Text, options: ChannelOptions,
        work: @escaping @Sendable (Mailbox, Poller) -> any LoopWork
    ) throws(Failure) {
        self.work = work
        self.servers = servers
        self.transport = transport
        self.authorization = authorization
        self.options = options
        self.inbox = try options.loops.next()
    }

    func makeWork(with poller: Poller) -> any LoopWork { work(self, poller) }

    /// False: the channel is closed, and the command is dropped.
    @discardableResult
    func post(_ command: Command) -> Bool {
        let (isAccepted, mustList) = state.withLock { state in
            guard !state.isClosed else { return (false, false) }
            state.commands.append(command)
            defer { state.isListed = true }
            return (true, !state.isListed)
        }
        if mustList { inbox.add(self) }
        return isAccepted
    }

    /// Closes the mailbox: it accepts no more commands, and the loop settles the calls. Later calls do nothing.
    func close() {
        let mustList = state.withLock { state in
            guard !state.isClosed else { return false }
            state.isClosed = true
            defer { state.isListed = true }
            return !state.isListed
        }
        if mustList { inbox.add(self) }
    }

    /// Moves everything posted into `commands`, which must be empty. Returns whether the mailbox was closed.
    func take(into commands: inout [Command]) -> Bool {
        state.withLock { state in
            swap(&commands, &state.commands)
            state.isListed = false
            return state.isClosed
        }
    }
}
