import Base
import Identity
import Messages
import Rules

/// postern.v1.Users/SetCustomClaims
enum UsersSetCustomClaims: SlowMethod {
    static func handle(_ request: UsersSetCustomClaimsRequest, _ call: Call) async throws
        -> UsersSetCustomClaimsResponse
    {
        try Values.checkCustomClaims(request.customClaimsJSON, limits: call.limits)
        var change = AdminChange()
        change.customClaims = request.customClaimsJSON
        let user = try await call.userSession(request.uid).administer(
            change, origin: call.origin, validateOnly: request.validateOnly)
        return UsersSetCustomClaimsResponse(
            user: user, ignoredClaims: Values.ignoredClaims(in: request.customClaimsJSON))
    }
}
