import Identity
import Messages

/// postern.v1.Outbox/Retry
enum OutboxRetry: SlowMethod {
    static func handle(_ request: OutboxRetryRequest, _ call: Call) async throws -> OutboxRetryResponse {
        OutboxRetryResponse(
            message: try await call.project.outbox.retry(
                request.messageID, tenantID: call.tenantID, validateOnly: request.validateOnly, origin: call.origin))
    }
}
