import Identity
import Messages
import Store

/// postern.v1.Outbox/Get
enum OutboxGet: SlowMethod {
    static func handle(_ request: OutboxGetRequest, _ call: Call) async throws -> OutboxGetResponse {
        let stored = try call.project.store.read {
            try $0.outboxMessage(request.messageID, tenantID: call.tenantID)
        }
        let contents = try call.project.oobDelivery.contents(of: stored, tenantID: call.tenantID)
        // The read is noted before the answer, because a caller who has read a link may use it.
        try await call.project.outbox.noteRead(request.messageID, tenantID: call.tenantID, origin: call.origin)
        return OutboxGetResponse(message: stored.message, contents: contents)
    }
}
