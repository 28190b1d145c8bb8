import Identity
import Messages

/// postern.v1.Outbox/Delete
enum OutboxDelete: SlowMethod {
    static func handle(_ request: OutboxDeleteRequest, _ call: Call) async throws -> OutboxDeleteResponse {
        try await call.project.outbox.delete(request.messageID, tenantID: call.tenantID, origin: call.origin)
        return OutboxDeleteResponse()
    }
}
