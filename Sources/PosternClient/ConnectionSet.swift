import Base
import Wire

/// A channel's connections: those that take new calls, and those that end with what is in flight on them.
struct ConnectionSet {
    /// In the order they were made: a call goes to the first one with room.
    private(set) var taking: [ClientConnection] = []
    /// Told to leave by the server.
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

    /// Sends the call's REQUEST where there is room for it. False: there is none now, and the call is unchanged.
    ///
    /// `isPatient`: only where the server has answered already. A balancer without a server behind it takes connections
    /// too, and a call that was sent may have been done.
    func open(_ call: Call, isPatient: Bool, now: Instant) -> Bool {
        taking.contains {
            (!isPatient || $0.isWelcomed) && $0.hasRoom(for: call.kind) && $0.open(call, now: now)
        }
    }

    /// Only one more connection would make room for a stream.
    var isFullOfStreams: Bool { taking.allSatisfy { $0.isWelcomed && $0.isFullOfStreams } }
}
