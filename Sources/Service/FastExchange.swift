import Base
import Identity
import Messages
import Store
import Transport
import Wire

/// One call of a fast method, from the payload's bytes to the answer's, without leaving the loop.
struct FastExchange: ~Copyable {
    let router: Router
    let method: RegisteredMethod
    let caller: Caller?
    let payload: UnsafeRawBufferPointer
    let stream: UInt32
    let requestID: UnsafeRawBufferPointer
    let start: Instant
    let timeoutNanoseconds: Int64

    var limits: Limits { router.context.project.limits }

    /// Runs the handler in one read transaction and writes its answer while the transaction lasts: a reply may point
    /// into the database's pages.
    borrowing func answer<Response: Message>(
        requestedTenantID: Text?, on connection: isolated Connection,
        _ handle: (borrowing Call, borrowing ReadTransaction) throws -> Reply<Response>
    ) throws {
        let project = router.context.project
        try Router.state(of: connection).reader(of: project.store).read { transaction in
            let (settings, namedTenantID) = try router.gate.tenant(
                requested: requestedTenantID, caller: caller, rule: method.descriptor,
                context: Router.state(of: connection), in: transaction)
            let call = Call(
                service: router.context, method: method, caller: caller, settings: settings,
                namedTenantID: namedTenantID, requestID: .empty, peerAddress: .empty, deadline: .distantFuture)
            let reply = try handle(call, transaction)
            connection.respond(stream: stream, metadata: OutgoingMetadata(requestID: requestID)) {
                reply.encode(into: &$0)
            }
        }
        method.metrics.record(.ok, nanoseconds: Instant.now.nanoseconds(since: start))
    }
}
