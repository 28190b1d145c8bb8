import Base
import Identity
import Synchronization

/// The connections and streams that each credential has open on this server. Any thread.
///
/// Counted per server, not per cluster, because the limits bound this server's memory.
final class CallerUse: Sendable {
    private struct Use {
        var connections = 0
        var streams = 0

        var isNone: Bool { connections == 0 && streams == 0 }
    }

    let connectionsRefused = Counter()
    let streamsRefused = Counter()
    let streamsOpen = Gauge()
    private let limits: Limits
    private let uses = Mutex<[Text: Use]>([:])

    init(limits: Limits) { self.limits = limits }

    /// Counts a connection that showed this credential first. RESOURCE_EXHAUSTED TOO_MANY_CONNECTIONS.
    func openConnection(of callerID: Text) throws(Failure) {
        guard increase(\.connections, of: callerID, max: limits.connectionsPerCallerMax) else {
            connectionsRefused.add()
            throw Failure(
                .tooManyConnections,
                "This credential is in use on \(limits.connectionsPerCallerMax) connections; close some of them.",
                retryAfter: .seconds(5))
        }
    }

    /// Notes the use of every API key with which a connection is open.
    func noteOpen(in keyUses: KeyUses) {
        let ids = uses.withLock { Array($0.keys) }
        for id in ids { keyUses.note(id) }
    }

    func closeConnection(of callerID: Text) { decrease(\.connections, of: callerID) }

    /// RESOURCE_EXHAUSTED TOO_MANY_STREAMS.
    func openStream(of callerID: Text) throws(Failure) {
        guard increase(\.streams, of: callerID, max: limits.streamsPerCallerMax) else {
            streamsRefused.add()
            throw Failure(
                .tooManyStreams,
                "This credential has \(limits.streamsPerCallerMax) streams open; end some of them.",
                retryAfter: .seconds(5))
        }
        streamsOpen.add(1)
    }

    func closeStream(of callerID: Text) {
        decrease(\.streams, of: callerID)
        streamsOpen.add(-1)
    }

    private func increase(_ count: WritableKeyPath<Use, Int>, of callerID: Text, max: Int) -> Bool {
        uses.withLock { uses in
            guard uses[callerID, default: Use()][keyPath: count] < max else { return false }
            uses[callerID, default: Use()][keyPath: count] += 1
            return true
        }
    }

    private func decrease(_ count: WritableKeyPath<Use, Int>, of callerID: Text) {
        uses.withLock { uses in
            uses[callerID]?[keyPath: count] -= 1
            if uses[callerID]?.isNone == true { uses[callerID] = nil }
        }
    }
}
