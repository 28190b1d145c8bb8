import Base

/// What a port writes into the log while it cannot accept connections: the same words for every port, at most one line
/// a second. One owner, not thread-safe.
struct AcceptWarnings {
    /// A port that cannot accept a connection tries again after this time: the connection that waits would call it
    /// again at once.
    static let pause = Duration.seconds(1)

    private let log: Log
    private var throttle = LogThrottle()

    init(log: Log) { self.log = log }

    /// A connection is accepted and closed at once, because the process is out of file descriptors.
    mutating func sheds() {
        guard throttle.admit(at: .now) else { return }
        log.warning("out of file descriptors, connections are closed at once", [:])
    }

    /// accept(2) failed with `code`, and the port pauses: no file descriptor is left, or the kernel lacks memory for
    /// sockets, for example.
    mutating func pauses(code: Int32) {
        guard throttle.admit(at: .now) else { return }
        log.warning("connections cannot be accepted, trying again in a second", ["errno": .integer(Int64(code))])
    }
}
