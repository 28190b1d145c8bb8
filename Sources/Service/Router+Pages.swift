import Base
import Identity
import Store
import Transport
import Wire

extension Router {
    /// Makes a page of a list when it is its turn: in one short transaction that begins after the wait, so that the
    /// page shows what is so then, and no reader of the database waits for a client.
    func answer(
        _ page: PreparedPage, _ method: RegisteredMethod, _ caller: Caller?, _ request: RequestEnvelope,
        stream: UInt32, _ requestID: UnsafeRawBufferPointer, start: Instant, on connection: isolated Connection
    ) {
        let place = AnswerPlace(stream: stream, requestID: Text(validating: requestID) ?? .empty)
        connection.run(
            stream: stream, kind: .unary, deadline: deadline(method, request.timeoutNanoseconds, start: start),
            requestByteCount: request.payload.count
        ) { [self] connection in
            do {
                try await connection.pageTurn(stream: stream)
                try answerNow(page, method, caller, place, connection)
                method.metrics.record(.ok, nanoseconds: Instant.now.nanoseconds(since: start))
            } catch {
                fail(error, method, place.requestID, stream: stream, start: start, on: connection)
            }
        }
    }

    private func answerNow(
        _ page: PreparedPage, _ method: RegisteredMethod, _ caller: Caller?, _ place: AnswerPlace,
        _ connection: isolated Connection
    ) throws {
        let project = context.project
        try Self.state(of: connection).reader(of: project.store).read { transaction in
            // The credential may have been revoked while the call waited.
            if let caller { try project.callers.checkStillValid(caller, in: transaction) }
            let (settings, namedTenantID) = try gate.tenant(
                requested: page.requestedTenantID, caller: caller, rule: method.descriptor,
                context: Self.state(of: connection), in: transaction)
            let call = Call(
                service: context, method: method, caller: caller, settings: settings, namedTenantID: namedTenantID,
                requestID: place.requestID, peerAddress: .empty, deadline: .distantFuture)
            try page.answer(call, transaction, place, connection)
        }
    }
}
