public import Base
import Glibc
public import Reactor

/// Accepts connections on one loop and hands each to the least loaded loop.
///
/// When the process is out of file descriptors, the reserve is closed for a moment to accept and close the waiting peer
/// (`DescriptorReserve`). Without a reserve the listener pauses for a second.
public final class Listener: SocketEvents, @unchecked Sendable {
    // Unchecked: everything mutable is touched on `loop` only; `start` and `close` go there by `loop.run`.

    public var address: SocketAddress { socket.address }
    private let socket: ListeningSocket
    private let loop: EventLoop
    private let mayAccept: @Sendable (Listener) -> Bool
    private let accepted: @Sendable (Int32) -> Void
    private var watch: FileWatch?
    private var reserve: DescriptorReserve
    private var pause: Timer?
    private var warnings: AcceptWarnings
    private var isClosed = false

    /// Binds and listens; `accepted` gets each connected descriptor, non-blocking, on the loop's thread. Once
    /// `mayAccept` has returned false, connections wait in the kernel's queue, and it is not called again before
    /// `resume()`.
    public init(
        _ wanted: SocketAddress, mode: UInt32 = 0o600, on loop: EventLoop, log: Log,
        mayAccept: @escaping @Sendable (Listener) -> Bool, accepted: @escaping @Sendable (Int32) -> Void
    ) throws(ListenError) {
        self.socket = try ListeningSocket(wanted, backlog: 1_024, mode: mode)
        self.loop = loop
        self.warnings = AcceptWarnings(log: log)
        self.mayAccept = mayAccept
        self.accepted = accepted
        self.reserve = DescriptorReserve()
    }

    public func start() {
        loop.run { [self] in
            guard !isClosed else { return }
            watch = FileWatch(on: loop, fileDescriptor: socket.descriptor, handler: self)
            watch?.setReading(true)
        }
    }

    /// Accepts again after `mayAccept` returned false. Any thread.
    public func resume() { loop.run { [self] in watch?.setReading(true) } }

    /// Accepts nothing from here on; accepted connections stay.
    public func close() {
        loop.run { [self] in
            guard !isClosed else { return }
            isClosed = true
            watch?.cancel()
            watch = nil
            pause?.cancel()
            socket.close()
            reserve.giveUp()
        }
    }

    public func socketIsReadable() {
        let code = socket.acceptWaiting(countMax: 64, while: hasRoom) {
            Socket.configure($0)
            accepted($0)
        }
        switch code {
        case nil: break
        case EMFILE, ENFILE: shedOne()
        case let code?:
            warnings.pauses(code: code)
            pauseAccepting()
        }
    }

    public func socketIsWritable() {}

    private func hasRoom() -> Bool {
        guard mayAccept(self) else {
            watch?.setReading(false)
            pause?.cancel()
            return false
        }
        return true
    }

    private func shedOne() {
        warnings.sheds()
        let isShed = reserve.use { [socket] in
            let connection = accept(socket.descriptor, nil, nil)
            if connection >= 0 { _ = Glibc.close(connection) }
        }
        if !isShed { pauseAccepting() }
    }

    private func pauseAccepting() {
        watch?.setReading(false)
        if pause == nil { pause = Timer(on: loop) { [weak self] in self?.watch?.setReading(true) } }
        pause?.arm(after: AcceptWarnings.pause)
    }
}
