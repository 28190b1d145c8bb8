import Base
import Wire

/// A channel's connections: those that take new calls, and those that only finish the calls in flight.
struct ConnectionSet {
    let policy: LoadBalancingPolicy
    /// The index at which round robin looks first for the next call.
    private var turn = 0
    /// The connections that take new calls, in the order in which they were made.
    private(set) var taking: [ClientConnection] = []
    /// The connections that the server told the client to leave.
    private var leaving: [ClientConnection] = []

    var all: [ClientConnection] { taking + leaving }
    var isEmpty: Bool { taking.isEmpty && leaving.isEmpty }

    init(_ policy: LoadBalancingPolicy) { self.policy = policy }

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

    /// Sends the call's REQUEST on a connection with room for it: the first one, or with round robin the next one.
    /// Returns false when there is none; the call is then unchanged.
    ///
    /// `isWelcomedOnly`: use only connections on which the server has answered already. A proxy without a server behind
    /// it accepts connections, too, and a call that was sent there may have been done.
    mutating func open(_ call: Call, isWelcomedOnly: Bool, now: Instant) -> Bool {
        let first = policy == .roundRobin ? turn : 0
        for offset in taking.indices {
            let index = (first + offset) % taking.count
            let connection = taking[index]
            guard !isWelcomedOnly || connection.isWelcomed, connection.hasRoom(for: call.kind),
                connection.open(call, now: now)
            else { continue }
            turn = (index + 1) % taking.count
            return true
        }
        return false
    }

    /// True if only another connection would make room for a stream.
    var isFullOfStreams: Bool { taking.allSatisfy { $0.isWelcomed && $0.isFullOfStreams } }
}
