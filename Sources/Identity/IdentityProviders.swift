public import Base
public import Messages

/// The identity providers that tenants trust to say who somebody is. None can be configured yet.
public struct IdentityProviders: Sendable {
    /// OPERATION_NOT_ALLOWED for a provider the tenant has not configured.
    public func prove(
        _ credential: IdpCredential, settings: TenantSettings, now: Timestamp, deadline: Instant
    ) async throws -> FederatedIdentity {
        throw Failure(
            .permissionDenied, "OPERATION_NOT_ALLOWED",
            "The provider \(credential.providerID) is not configured for this tenant.")
    }
}
