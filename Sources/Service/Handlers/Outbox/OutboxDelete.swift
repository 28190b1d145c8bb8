import Identity
import Messages
import Store

/// postern.v1.Outbox/Delete
enum OutboxDelete: SlowMethod {
    static func purpose(of request: OutboxDeleteRequest, _ rule: MethodDescriptor) -> WritePurpose { .removal }

    static func handle(_ request: OutboxDeleteRequest, _ call: Call) async throws -> OutboxDeleteResponse {
        try await call.project.outbox.delete(
            request.messageID, tenantID: call.tenantID, validateOnly: request.validateOnly, origin: call.origin)
        return OutboxDeleteResponse()
    }
}
