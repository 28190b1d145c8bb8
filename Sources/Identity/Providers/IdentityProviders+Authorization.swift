public import Base
import Federation
public import Messages
import Rules

extension IdentityProviders {
    /// The URL at which an end user's browser signs in with a provider. Nothing is stored.
    ///
    /// Refusals, in order: INVALID_CREDENTIAL_OR_PROVIDER_ID, those of `AuthorizationRules`, OPERATION_NOT_ALLOWED (not
    /// configured or not enabled), and those of `prove` where the provider has to be asked for its discovery document.
    public func authUri(
        _ request: AccountsCreateAuthUriRequest, tenantID: Text, now: Timestamp,
        checkingRedirect checkRedirect: (Text) throws -> Void
    ) async throws -> AccountsCreateAuthUriResponse {
        guard KnownProvider(request.providerID) != nil else {
            throw Failure(
                .invalidCredentialOrProviderID, "provider_id is not the id of a provider.")
        }
        try AuthorizationRules.check(request, limits: resources.limits)
        try checkRedirect(request.continueURI)
        let configuration = try enabledConfiguration(request.providerID, tenantID: tenantID)
        do {
            let made = try await client.authorizationRequest(
                configuration, redirectURI: request.continueURI, scopes: request.scopes,
                parameters: request.customParameters.map { ($0.name, $0.value) }, now: now, random: resources.random)
            return AccountsCreateAuthUriResponse(
                authURI: made.uri, sessionID: made.state, nonce: made.nonce, codeVerifier: made.verifier,
                issuer: made.issuer, issuerRequired: made.isIssuerRequired)
        } catch let error as FederationError {
            throw Failure(error, providerID: request.providerID)
        }
    }
}
