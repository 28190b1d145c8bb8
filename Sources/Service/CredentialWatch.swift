import Base
import Identity
import Reactor
import Rules
import Store
import Synchronization
public import Transport

// What happens to connections and streams when the credential they began with is revoked, changed or expires. Streams
// also check it themselves before they send anything; but a stream that waits for its client, or cannot send to it,
// checks nothing.

/// Ends streams whose credential is no longer valid, and takes the larger limits from their connection.
///
/// It follows the commits, so that a revocation by an admin on another node takes effect here as well.
final class CredentialWatch: Sendable {
    /// Credentials expire without a commit.
    private static let lookEvery = Duration.seconds(10)

    private let router: Router
    private let server: Server
    private let loop: EventLoop
    private let task = Mutex<Task<Void, Never>?>(nil)
    /// The credentials that were changed since the last pass.
    private let changed = Mutex(ChangedCredentials())

    init(router: Router, server: Server, loop: EventLoop) {
        self.router = router
        self.server = server
        self.loop = loop
    }

    func start() {
        let project = router.service.project
        project.callers.listen { [weak self, weak changes = project.changes] changed in
            guard let self else { return }
            self.changed.withLock { $0.formUnion(changed) }
            changes?.announce([.credentials])
        }
        loop.run { [self] in
            let started = Task.immediate(executorPreference: loop) { [weak self, router, server, loop] in
                let watch = router.service.project.changes.watch(
                    [.credentials], in: WriteMeter.server, on: loop)
                defer { watch.end() }
                var lookedAtAll = Instant.now
                while (try? await watch.next(timeout: Self.lookEvery)) != nil {
                    var changed = self?.takeChanged()
                    if Instant.now >= lookedAtAll.advanced(by: Self.lookEvery) {
                        (changed, lookedAtAll) = (nil, .now)
                    }
                    // The pass before has handled what this was called for.
                    if changed?.isEmpty == true { continue }
                    // One pass at a time: the next pass handles the commits that come during this one.
                    await server.visitConnections { [changed] in router.checkCredentials(of: $0, changed) }
                }
            }
            task.withLock { $0 = started }
        }
    }

    private func takeChanged() -> ChangedCredentials {
        changed.withLock { changed in
            defer { changed = ChangedCredentials() }
            return changed
        }
    }

    func stop() { task.withLock { $0.take() }?.cancel() }
}

extension Router {
    /// A caller that is no longer valid loses its streams; the connection that showed it last is again without a
    /// credential, unless a stream of another caller goes on. `changed`: only these are looked at; nil: all. On a node
    /// that may have missed a revocation, a pass over all ends all streams that need a credential.
    func checkCredentials(of connection: isolated Connection, _ changed: ChangedCredentials?) {
        let state = connection.connectionContext
        // Each credential may be revoked on another node. The connection keeps its credential, which may also be good.
        if changed == nil, service.project.mayMissRevocations { connection.endCalls { _ in Failure.nodeBehind } }
        // A connection mostly has one caller, which is checked twice here.
        var known: (caller: Caller, failure: Failure?)?
        var hasEndedCalls = false
        func failure(_ caller: Caller) -> Failure? {
            if let known, known.caller === caller { return known.failure }
            let failure = reasonToEnd(caller, from: connection.peerAddress)
            known = (caller, failure)
            return failure
        }
        let goesOn = connection.endCalls { credential in
            guard let caller = credential as? Caller, changed?.concern(caller) != false else { return nil }
            let failure = failure(caller)
            if failure != nil { hasEndedCalls = true }
            return failure
        }
        guard connection.isAuthenticated, !goesOn, let shown = state.lastCaller,
            // The call that ended may have been what kept a connection with an invalid credential.
            hasEndedCalls || changed?.concern(shown) != false, failure(shown) != nil
        else { return }
        connection.lostCredential()
        releaseConnection(of: state)
    }

    /// Nil also if the store cannot tell: the next pass will.
    private func reasonToEnd(_ caller: Caller, from peer: Text) -> Failure? {
        do {
            try service.project.store.read {
                try service.project.callers.checkStillValid(caller, from: peer, in: $0)
            }
            return nil
        } catch {
            return error as? Failure
        }
    }

    /// The connection showed a good credential: larger limits, unless it comes from an address that the credential may
    /// not be used from (ADDRESS_NOT_ALLOWED), or the credential has too many connections already. Code that finds a
    /// caller calls this before it does anything for the caller.
    func countConnection<Carrier: CallCarrier>(_ carrier: isolated Carrier, of caller: Caller) throws(Failure) {
        try caller.checkAddress(carrier.peerAddress)
        guard !carrier.isAuthenticated else { return }
        try callerUse.openConnection(of: caller)
        carrier.connectionContext.countedCaller = caller
        carrier.authenticated(line: caller.line)
    }

    public func closed(_ connection: isolated Connection) { releaseConnection(of: connection.connectionContext) }

    private func releaseConnection(of state: ConnectionContext) {
        if let caller = state.countedCaller.take() { callerUse.closeConnection(of: caller) }
    }
}
