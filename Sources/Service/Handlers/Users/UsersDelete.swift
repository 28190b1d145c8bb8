import Identity
import Messages

/// postern.v1.Users/Delete
enum UsersDelete: SlowMethod {
    static func handle(_ request: UsersDeleteRequest, _ call: Call) async throws -> UsersDeleteResponse {
        try await call.userSession(request.uid).delete(origin: call.origin, validateOnly: request.validateOnly)
        return UsersDeleteResponse()
    }
}
