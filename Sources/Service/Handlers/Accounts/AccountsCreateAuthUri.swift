import Base
import Identity
import Messages
import Rules

/// postern.v1.Accounts/CreateAuthUri
enum AccountsCreateAuthUri: SlowMethod {
    static func handle(
        _ request: AccountsCreateAuthUriRequest, _ call: Call
    ) async throws -> AccountsCreateAuthUriResponse {
        let address = try call.endUserAddress(request.endUserIP)
        let isAboutEmail = !request.identifier.isEmpty || request.providerID.isEmpty
        let methods = isAboutEmail ? try await signInMethods(of: request.identifier, address, call) : nil
        var response = AccountsCreateAuthUriResponse()
        if !request.providerID.isEmpty {
            response = try await call.project.providers.authUri(request, tenantID: call.tenantID, now: call.now) {
                try call.project.continueURLs.check($0, field: "continue_uri", settings: call.settings)
            }
        }
        response.registered = methods != nil
        response.signInMethods = methods ?? []
        return response
    }

    /// Nil for an email without an account, and for a tenant with email privacy.
    private static func signInMethods(
        of identifier: Text, _ address: EndUserAddress?, _ call: Call
    ) async throws -> [Text]? {
        guard !identifier.isEmpty else {
            throw Failure.invalid(.missingIdentifier, field: "identifier", "is required, or provider_id")
        }
        guard let email = Email(identifier, form: .toFind, limits: call.limits) else {
            throw Failure.invalid(.invalidIdentifier, field: "identifier", "is no email address")
        }
        guard !call.settings.hasEmailPrivacy else { return nil }
        try await call.chargeProbe(address: address)
        return try call.project.users.account(email: email, tenantID: call.tenantID)?.signInMethodsByEmail
    }
}
