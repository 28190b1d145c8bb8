import Identity
import Messages
import Store

/// postern.v1.Users/Delete
enum UsersDelete: SlowMethod {
    static func purpose(of request: UsersDeleteRequest, _ rule: MethodDescriptor) -> WritePurpose { .removal }

    static func handle(_ request: UsersDeleteRequest, _ call: Call) async throws -> UsersDeleteResponse {
        try await call.userSession(request.uid).delete(origin: call.origin, validateOnly: request.validateOnly)
        return UsersDeleteResponse()
    }
}
