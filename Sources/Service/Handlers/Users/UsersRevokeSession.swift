import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Users/RevokeSession
enum UsersRevokeSession: SlowMethod {
    static func purpose(of request: UsersRevokeSessionRequest, _ rule: MethodDescriptor) -> WritePurpose { .removal }

    static func handle(_ request: UsersRevokeSessionRequest, _ call: Call) async throws -> UsersRevokeSessionResponse {
        let key = UserKey(call.tenantID, request.uid)
        guard try call.project.store.read({ try $0.encodedUser(key) != nil }) else { throw Failure.userNotFound }
        _ = try await call.userSession(request.uid).end(
            session: try call.sessionID(request.sessionID), .admin, origin: call.origin,
            validateOnly: request.validateOnly)
        return UsersRevokeSessionResponse()
    }
}
