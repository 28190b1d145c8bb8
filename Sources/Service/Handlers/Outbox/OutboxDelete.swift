import Identity
import Messages
import Store

/// postern.v1.Outbox/Delete
enum OutboxDelete: SlowMethod {
    static func handle(_ request: OutboxDeleteRequest, _ call: Call) async throws -> OutboxDeleteResponse {
        let tenantID = call.tenantID
        try await call.project.store.write { try $0.deleteOutboxMessage(request.messageID, tenantID: tenantID) }
        return OutboxDeleteResponse()
    }
}
