import Base
import Identity
import Reactor
import Rules
import Store
import Synchronization
public import Transport

// What becomes of connections and streams when the credential they began with is revoked, changed or expires. Streams
// look by themselves, too, before they tell anything; but a stream that waits for its client, or cannot send to it,
// looks at nothing.

/// Ends what was begun with a credential that is no longer valid.
///
/// Follows the commits, so that what an admin revokes on another node ends here as well.
final class CredentialWatch: Sendable {
    /// Credentials that expire do so without a commit.
    private static let lookEvery = Duration.seconds(10)

    private let router: Router
    private let server: Server
    private let loop: EventLoop
    private let task = Mutex<Task<Void, Never>?>(nil)

    init(router: Router, server: Server, loop: EventLoop) {
        self.router = router
        self.server = server
        self.loop = loop
    }

    func start() {
        loop.run { [self] in
            let started = Task.immediate(executorPreference: loop) { [router, server, loop] in
                let watch = router.service.project.changes.watch(.callers, on: loop)
                defer { watch.end() }
                while (try? await watch.next(timeout: Self.lookEvery)) != nil {
                    // One pass at a time: what is committed during one is looked at by the next.
                    await server.visitConnections { router.checkCredentials(of: $0) }
                }
            }
            task.withLock { $0 = started }
        }
    }

    func stop() { task.withLock { $0.take() }?.cancel() }
}

extension Router {
    /// A caller that is no longer valid loses its streams; the connection that showed it last is again one without a
    /// credential, unless a stream of another caller goes on.
    func checkCredentials(of connection: isolated Connection) {
        let state = connection.connectionContext
        // Mostly one caller per connection, asked about twice.
        var known: (caller: Caller, failure: Failure?)?
        func failure(_ credential: AnyObject) -> Failure? {
            guard let caller = credential as? Caller else { return nil }
            if let known, known.caller === caller { return known.failure }
            let failure = reasonToEnd(caller, from: connection.peerAddress)
            known = (caller, failure)
            return failure
        }
        let goesOn = connection.endCalls(failure)
        guard connection.isAuthenticated, !goesOn, let shown = state.lastCaller, failure(shown) != nil else { return }
        connection.lostCredential()
        releaseConnection(of: state)
    }

    /// Nil also when the store cannot tell: the next look will.
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
    /// not be used from (ADDRESS_NOT_ALLOWED), or the credential has too many connections already. Whoever finds a
    /// caller calls this before anything is done for it.
    func countConnection<Carrier: CallCarrier>(_ carrier: isolated Carrier, of caller: Caller) throws(Failure) {
        try caller.checkAddress(carrier.peerAddress)
        guard !carrier.isAuthenticated else { return }
        try callerUse.openConnection(of: caller.id)
        carrier.connectionContext.countedCallerID = caller.id
        carrier.authenticated()
    }

    public func closed(_ connection: isolated Connection) { releaseConnection(of: connection.connectionContext) }

    private func releaseConnection(of state: ConnectionContext) {
        if let callerID = state.countedCallerID.take() { callerUse.closeConnection(of: callerID) }
    }
}
