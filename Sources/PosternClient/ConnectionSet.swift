import Base
import Wire

/// A channel's connections: those that take new calls, and those that end with what is in flight on them.
struct ConnectionSet {
    /// In the order they were made: a call goes to the first one with room.
    private(set) var taking: [ClientConnection] = []
    /// The connections that the server told to leave.
    private var leaving: [ClientConnection] = []

    var all: [ClientConnection] { taking + leaving }
    var isEmpty: Bool { taking.isEmpty && leaving.isEmpty }

    mutating func add(_ connection: ClientConnection) { taking.append(connection) }

    mutating func remove(_ connection: ClientConnection) {
        taking.removeAll { $0 === connection }
        leaving.removeAll { $0 === connection }
    }

    mutating func setLeavingAside() {
        guard taking.contains(where: \.isLeaving) else { return }
        leaving += taking.filter(\.isLeaving)
        taking.removeAll(where: \.isLeaving)
    }

    /// Sends the call's REQUEST on a connection with room for it. Returns false when there is none; the call is then
    /// unchanged.
    ///
    /// `isPatient`: use only connections on which the server has answered already. A load balancer without a server
    /// behind it accepts connections, too, and a call that was sent there may have been done.
    func open(_ call: Call, isPatient: Bool, now: Instant) -> Bool {
        taking.contains {
            (!isPatient || $0.isWelcomed) && $0.hasRoom(for: call.kind) && $0.open(call, now: now)
        }
    }

    /// True if only another connection would make room for a stream.
    var isFullOfStreams: Bool { taking.allSatisfy { $0.isWelcomed && $0.isFullOfStreams } }
}
