import Base
import Identity
import Messages
import Rules

/// postern.v1.Users/Link
enum UsersLink: SlowMethod {
    static func handle(_ request: UsersLinkRequest, _ call: Call) async throws -> UsersLinkResponse {
        guard let provider = request.provider else {
            throw Failure.invalid(.invalidProvider, field: "provider", "is required")
        }
        try Values.checkProvider(provider, form: call.settings.emailForm, limits: call.limits)
        var change = AdminChange()
        change.linkedProviders = [provider]
        let user = try await call.userSession(request.uid).administer(
            change, origin: call.origin, validateOnly: request.validateOnly)
        return UsersLinkResponse(user: user)
    }
}
