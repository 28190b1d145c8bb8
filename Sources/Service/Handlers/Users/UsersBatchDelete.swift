import Base
import Identity
import Messages
import Rules

/// postern.v1.Users/BatchDelete
enum UsersBatchDelete: SlowMethod {
    static func handle(_ request: UsersBatchDeleteRequest, _ call: Call) async throws -> UsersBatchDeleteResponse {
        guard request.uids.count <= call.limits.administration.batchDeleteMax else {
            throw Failure.invalid(
                .tooManyItems, field: "uids", "must have at most \(call.limits.administration.batchDeleteMax) items")
        }
        return try await call.project.users.delete(
            request.uids, tenantID: call.tenantID, force: request.force, validateOnly: request.validateOnly,
            origin: call.origin)
    }
}
