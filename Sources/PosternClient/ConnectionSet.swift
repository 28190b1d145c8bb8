import Base
import Wire

/// A channel's connections: those that take new calls, and those that end with what is in flight on them.
struct ConnectionSet {
    let policy: LoadBalancingPolicy
    /// Round robin: where to look first for the next call.
    private var turn = 0
    /// In the order they were made.
    private(set) var taking: [ClientConnection] = []
    /// The connections that the server told to leave.
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
