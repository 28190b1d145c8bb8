import Identity
import Messages
import Rules

/// postern.v1.Users/RevokeTokens
enum UsersRevokeTokens: SlowMethod {
    static func handle(_ request: UsersRevokeTokensRequest, _ call: Call) async throws -> UsersRevokeTokensResponse {
        var change = AdminChange()
        change.revokesTokens = true
        let user = try await call.userSession(request.uid).administer(
            change, origin: call.origin, validateOnly: request.validateOnly)
        return UsersRevokeTokensResponse(user: user)
    }
}
