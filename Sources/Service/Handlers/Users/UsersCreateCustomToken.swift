import Base
import Identity
import Messages
import Rules

/// postern.v1.Users/CreateCustomToken
enum UsersCreateCustomToken: SlowMethod {
    static func handle(_ request: UsersCreateCustomTokenRequest, _ call: Call) async throws
        -> UsersCreateCustomTokenResponse
    {
        let made = try await call.project.customTokens.make(
            uid: request.uid, claims: request.claimsJSON, lifetimeSeconds: request.lifetimeSeconds,
            settings: call.settings, validateOnly: request.validateOnly, origin: call.origin)
        return UsersCreateCustomTokenResponse(
            customToken: made.token, expiresAtMicros: made.expiresAt.microseconds,
            ignoredClaims: Values.ignoredClaims(in: request.claimsJSON))
    }
}
