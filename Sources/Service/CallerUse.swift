import Base
import Identity
import Rules
import Synchronization

/// The connections and streams that each credential has open on this server, and those that all credentials of a tenant
/// have together: a tenant's admin makes as many credentials as it likes. Any thread.
///
/// Streams that end users hold are counted apart from all others: the users of an application are strangers, and must
/// not take the place of the feed of revocations without which a back end refuses every token.
///
/// Counted per server, not per cluster, because the limits bound this server's memory.
final class CallerUse: Sendable {
    private struct Use {
        var connections = 0
        var streams = 0
        var endUserStreams = 0

        var isNone: Bool { connections == 0 && streams == 0 && endUserStreams == 0 }

        static func streams(ofEndUser: Bool) -> WritableKeyPath<Use, Int> {
            ofEndUser ? \.endUserStreams : \.streams
        }
    }

    private struct State {
        var callers: [Text: Use] = [:]
        var tenants: [Text: Use] = [:]
        var connections = 0

        /// Whether there was room for one more.
        mutating func increase(
            _ count: WritableKeyPath<Use, Int>, of caller: Caller, callerMax: Int, tenantMax: Int
        ) -> Bool {
            guard callers[caller.id, default: Use()][keyPath: count] < callerMax else { return false }
            if let tenant = caller.tenantID {
                guard tenants[tenant, default: Use()][keyPath: count] < tenantMax else { return false }
                tenants[tenant, default: Use()][keyPath: count] += 1
            }
            callers[caller.id, default: Use()][keyPath: count] += 1
            return true
        }

        mutating func decrease(_ count: WritableKeyPath<Use, Int>, of caller: Caller) {
            Self.decrease(count, of: caller.id, in: &callers)
            if let tenant = caller.tenantID { Self.decrease(count, of: tenant, in: &tenants) }
        }

        private static func decrease(_ count: WritableKeyPath<Use, Int>, of id: Text, in uses: inout [Text: Use]) {
            uses[id]?[keyPath: count] -= 1
            if uses[id]?.isNone == true { uses[id] = nil }
        }
    }

    let connectionsRefused = Counter()
    let streamsRefused = Counter()
    let streamsOpen = Gauge()
    private let limits: Limits
    private let uses = Mutex(State())

    init(limits: Limits) { self.limits = limits }

    /// Counts a connection that showed this credential first. RESOURCE_EXHAUSTED TOO_MANY_CONNECTIONS.
    func openConnection(of caller: Caller) throws(Failure) {
        let isCounted = uses.withLock { uses in
            // However many tenants take all they can get, some places are left for the next one.
            let free = limits.connectionsMax - uses.connections
            let tenantMax = min(limits.connectionsPerCallerMax, 4 * max(0, free))
            let isCounted = uses.increase(
                \.connections, of: caller, callerMax: limits.connectionsPerCallerMax, tenantMax: tenantMax)
            if isCounted { uses.connections += 1 }
            return isCounted
        }
        guard isCounted else {
            connectionsRefused.add()
            throw Failure(
                .tooManyConnections,
                "This credential, or its tenant, is in use on as many connections as it may have; close some of them.",
                retryAfter: .seconds(5))
        }
    }

    /// Notes the use of every API key with which a connection is open.
    func noteOpen(in keyUses: KeyUses) {
        let ids = uses.withLock { Array($0.callers.keys) }
        for id in ids { keyUses.note(id) }
    }

    func closeConnection(of caller: Caller) {
        uses.withLock { uses in
            uses.decrease(\.connections, of: caller)
            uses.connections -= 1
        }
    }

    /// Counts a stream. `ofEndUser`: an end user asks for it, through an application. RESOURCE_EXHAUSTED
    /// TOO_MANY_STREAMS.
    func openStream(of caller: Caller, ofEndUser: Bool) throws(Failure) {
        let most = limits.streamsPerCallerMax
        let isCounted = uses.withLock { uses in
            uses.increase(Use.streams(ofEndUser: ofEndUser), of: caller, callerMax: most, tenantMax: most)
        }
        guard isCounted else {
            streamsRefused.add()
            throw Failure(
                .tooManyStreams,
                "This credential, or its tenant, has \(most) \(ofEndUser ? "streams of end users" : "streams") open; "
                    + "end some of them.",
                retryAfter: .seconds(5))
        }
        streamsOpen.add(1)
    }

    func closeStream(of caller: Caller, ofEndUser: Bool) {
        uses.withLock { $0.decrease(Use.streams(ofEndUser: ofEndUser), of: caller) }
        streamsOpen.add(-1)
    }
}
