import Base
import Identity
import Messages
import Store

extension Project {
    /// Whether this node may have missed a revocation: it has not heard of the other nodes for longer than its limit.
    /// False if the operator wants the node to go on.
    var mayMissRevocations: Bool {
        let limits = limits.journal
        return store.isInCluster && limits.whenBehind == .refuse && store.staleness > limits.staleAfter
    }

    /// NODE_BEHIND where a missed revocation would make the answer wrong.
    func requireFresh() throws(Failure) {
        if mayMissRevocations { throw .nodeBehind }
    }
}

extension Router {
    /// Guards a call that is answered from this node's store as it is: the caller's credential, the tenant or the token
    /// in the request may be revoked or suspended on another node. NODE_BEHIND.
    ///
    /// Health needs no credential. The cluster's status and the server's information are for the operator who mends the
    /// cluster, and tell of nothing that a tenant has.
    func requireFresh(for method: MethodDescriptor) throws(Failure) {
        guard service.project.mayMissRevocations, method.role != .unspecified,
            method !== MethodDescriptor.projectGetClusterStatus, method !== MethodDescriptor.projectServerInfo
        else { return }
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
