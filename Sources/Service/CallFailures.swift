import Base
import Synchronization

/// Failed calls by method, status and reason. Any thread.
///
/// The separate counts are bounded: only known reasons, and only the first `Limits.failuresCountedApartMax` kinds that
/// come. All other failures are counted by their status. A reason whose cause is a tenant's own server is told in any
/// case.
final class CallFailures: Sendable {
    struct Kind: Hashable {
        /// The method's full name.
        let method: String
        let status: StatusCode
        let reason: String
    }

    /// The name for failures that are not counted separately.
    static let other = "_OTHER"

    private let kindsMax: Int
    private let counts = Mutex<[Kind: UInt64]>([:])

    /// The failures that have their cause in this server, its disk or its cluster: by the statuses of such failures.
    let ownFaults: [(status: StatusCode, count: Counter)] = [StatusCode.internal, .unknown, .dataLoss, .unavailable]
        .map { (status: $0, count: Counter()) }

    /// These reasons come with the status of a server that fails, but their cause is a tenant's own server, a client
    /// that showed no credential in time, or whoever stops this server.
    private static let reasonsOfOthers: Set<Reason> = [
        .idpUnavailable, .hookFailed, .credentialMissing, .serverShuttingDown, .shuttingDown,
    ]

    init(limits: Limits) { self.kindsMax = limits.failuresCountedApartMax }

    func count(_ failure: Failure, of method: String) {
        let kind = Kind(method: method, status: failure.code, reason: failure.reason)
        if !Self.isOfOthers(failure) { ownFaults.first { $0.status == failure.code }?.count.add() }
        counts.withLock { counts in
            let isKnown = counts[kind] != nil
            let isNew = !isKnown && counts.count < kindsMax && failure.knownReason != nil
            let counted = isKnown || isNew ? kind : Self.others(failure)
            counts[counted, default: 0] &+= 1
        }
    }

    /// In the order of the names.
    var all: [(kind: Kind, count: UInt64)] {
        counts.withLock { counts in counts.map { (kind: $0.key, count: $0.value) } }.sorted {
            let (one, other) = ($0.kind, $1.kind)
            return (one.method, one.reason, one.status.rawValue) < (other.method, other.reason, other.status.rawValue)
        }
    }

    private static func others(_ failure: Failure) -> Kind {
        Kind(method: other, status: failure.code, reason: isOfOthers(failure) ? failure.reason : other)
    }

    private static func isOfOthers(_ failure: Failure) -> Bool {
        // Strangers who ask too much get the reason of a node that is behind.
        if failure.ground == .strangers { return true }
        return failure.knownReason.map { reasonsOfOthers.contains($0) } ?? false
    }
}
