import Base
import Identity
import Store

extension Project {
    /// Guards answers that a missed revocation would make wrong: NODE_BEHIND while this node has not heard of the
    /// others for longer than its limit, unless the operator wants it to go on. Called once the token is known to be
    /// genuine.
    func requireFresh() throws(Failure) {
        let limits = limits.journal
        guard store.isInCluster, limits.whenBehind == .refuse, store.staleness > limits.staleAfter else {
            return
        }
        throw .nodeBehind
    }
}

extension Failure {
    /// The engine does not answer, or is asked too often.
    static let nodeBehind = Failure(
        .nodeBehind, "This node cannot ask its cluster what is so now; try again, or ask another node.",
        retryAfter: .seconds(1))

    /// This node would refuse the call because of the time, and its clock is too far from the cluster's.
    static let clockAway = Failure(
        .nodeBehind, "This node's clock is not the cluster's, so it refuses nothing by the time; ask another node.",
        retryAfter: .seconds(1))
}
