import Base
import Identity
import Rules
import Store
import Synchronization
import Wire

// Calls that a node of a cluster must not answer from an old state: docs/decisions/0119 and 0123. A server outside of a
// cluster checks this once for each call, and finds that there is nothing to do.

extension Router {
    var isInCluster: Bool { service.project.store.isInCluster }

    /// The journal position that the answer to a change tells; nil for other calls, and outside of a cluster.
    func position(after method: MethodDescriptor) -> Text? {
        method.mutation ? service.project.store.journalPosition?.text : nil
    }

    /// The place in the journal that all reads from now on hold. Nil for a request that names no freshness, and outside
    /// of a cluster.
    ///
    /// The calls that came in with this one share a snapshot, which may be older than that place.
    func readPosition(for metadata: Metadata, _ context: ConnectionContext) -> JournalPosition? {
        guard metadata.position != nil || metadata.consistency != nil,
            let node = service.project.store.journalPosition
        else { return nil }
        context.readAnew()
        return node
    }

    /// Whether a call that only reads has to wait until this node has seen the journal's end. INVALID_POSITION,
    /// INVALID_CONSISTENCY.
    func mustReachEnd(_ incoming: IncomingCall) throws(Failure) -> Bool {
        guard let node = incoming.readPosition else { return false }
        return try CallFreshness(incoming.request.metadata, at: node).isBeyond(node)
    }

    /// Returns when this node's store has reached the journal's end, and with it the position that the call names.
    /// NODE_BEHIND, and INVALID_POSITION for a position beyond the end.
    func reachEnd(for freshness: CallFreshness?, _ caller: Caller?) async throws {
        do {
            try await service.project.store.reachJournalEnd(tenant: caller?.tenantID ?? WriteMeter.project)
        } catch StoreError.journal(let trouble) where trouble.isNodeBehind {
            throw Failure.nodeBehind
        }
        guard let position = freshness?.position, let node = service.project.store.journalPosition else { return }
        if position.number > node.number { throw Failure.positionBeyondEnd }
    }

    /// The failure that the caller is told. While this node's clock differs from the cluster's, no refusal by the time
    /// is final: a client that is told that its session has expired drops it.
    func told(_ failure: Failure) -> Failure {
        isInCluster && failure.isByTime && service.project.store.isClockAway ? .clockAway : failure
    }

    /// Whether a refused call may cause a question to the engine. All callers without a known credential share one
    /// rate.
    func mayAsk(for caller: Caller?) -> Bool {
        if caller != nil { return true }
        let now = Instant.now
        return strangersQuestions.withLock { $0.take(now: now) }
    }
}

extension Failure {
    fileprivate static let positionBeyondEnd = Failure(
        .invalidPosition, "x-postern-position is beyond the end of the cluster's journal.")
}
