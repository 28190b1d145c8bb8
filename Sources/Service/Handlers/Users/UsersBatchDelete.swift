import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Users/BatchDelete
enum UsersBatchDelete: SlowMethod {
    static func purpose(of request: UsersBatchDeleteRequest, _ rule: MethodDescriptor) -> WritePurpose { .removal }

    static func handle(_ request: UsersBatchDeleteRequest, _ call: Call) async throws -> UsersBatchDeleteResponse {
        guard request.uids.count <= call.limits.administration.batchDeleteMax else {
            throw Failure.invalid(
                .tooManyItems, field: "uids", "must have at most \(call.limits.administration.batchDeleteMax) items")
        }
        // What a batch takes while it runs is counted nowhere.
        let place = try await call.project.imports.places.take(call.settings.tenantID)
        defer { place.leave() }
        return try await call.project.users.delete(
            request.uids, tenantID: call.tenantID, force: request.force, validateOnly: request.validateOnly,
            origin: call.origin)
    }
}
