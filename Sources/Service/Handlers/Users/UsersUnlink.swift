import Identity
import Messages
import Rules

/// postern.v1.Users/Unlink
enum UsersUnlink: SlowMethod {
    static func handle(_ request: UsersUnlinkRequest, _ call: Call) async throws -> UsersUnlinkResponse {
        var change = AdminChange()
        change.unlinkedProviderIDs = [request.providerID]
        let user = try await call.userSession(request.uid).administer(
            change, origin: call.origin, validateOnly: request.validateOnly)
        return UsersUnlinkResponse(user: user)
    }
}
