import Base
import Identity
import Messages

extension Call {
    /// Who an identity provider's credential says the end user is, after it was verified with the provider, or earlier
    /// for a pending token.
    ///
    /// Refusals: MISSING_CREDENTIAL, OPERATION_NOT_ALLOWED, INVALID_PENDING_TOKEN, and what verifying brings.
    func provedIdentity(_ credential: IdpCredential?) async throws -> FederatedIdentity {
        guard let credential, let kind = credential.credential else {
            throw Failure.invalid("MISSING_CREDENTIAL", field: "credential", "is required")
        }
        if case .pendingToken(let token) = kind {
            let text = token.withBytes { Text(validating: [UInt8]($0)) } ?? .empty
            let identity = try project.pendingCredentials.identity(in: text, tenantID: tenantID, now: now)
            return try project.providers.stillProved(identity, tenantID: tenantID)
        }
        return try await project.providers.prove(credential, settings: settings, now: now, deadline: deadline)
    }
}
