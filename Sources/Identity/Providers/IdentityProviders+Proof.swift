public import Base
import Federation
import JSON
public import Messages
public import Rules
public import Store

extension IdentityProviders {
    /// The identity that the provider states, verified with the provider, and whether the provider is trusted for the
    /// email.
    ///
    /// Refusals, in order: INVALID_CREDENTIAL_OR_PROVIDER_ID (no id of a provider, no credential),
    /// OPERATION_NOT_ALLOWED (not configured or not enabled), then with metadata `detail` INVALID_IDP_RESPONSE (the
    /// credential proves nothing), INVALID_IDP_CONFIGURATION (an admin has to put something right) or IDP_UNAVAILABLE
    /// (the provider does not answer as it should); SERVER_OVERLOADED. None of them contains what the provider said.
    public func prove(
        _ credential: IdpCredential, settings: TenantSettings, now: Timestamp, deadline: Instant, source: Text
    ) async throws -> FederatedIdentity {
        guard KnownProvider.isID(credential.providerID), let proof = ProviderProof(credential) else {
            throw Failure(
                .invalidCredentialOrProviderID,
                "credential needs the id of a provider and an ID token, an access token or an authorization code.")
        }
        let configuration = try enabledConfiguration(credential.providerID, tenantID: settings.tenantID)
        do {
            let (profile, isEmailTrusted) = try await client.prove(
                proof, nonce: credential.nonce, configuration, now: now, deadline: deadline, source: source)
            var identity = FederatedIdentity(
                profile, providerID: credential.providerID, isEmailTrusted: isEmailTrusted, form: settings.emailForm,
                limits: resources.limits)
            identity.issuer = configuration.identityIssuer
            identity.providerUpdatedAt = Timestamp(microseconds: configuration.provider.updatedAtMicros)
            return identity
        } catch let error as FederationError {
            throw Failure(error, providerID: credential.providerID)
        }
    }

    /// An identity that was proved earlier, bound to its issuer. It counts only while the provider's configuration is
    /// as it was then: an admin who disables a provider or trusts it less means pending identities too.
    /// OPERATION_NOT_ALLOWED, INVALID_PENDING_TOKEN.
    public func stillProved(_ pending: FederatedIdentity, tenantID: Text) throws -> FederatedIdentity {
        var identity = pending
        let configuration = try enabledConfiguration(identity.providerID, tenantID: tenantID)
        guard configuration.provider.updatedAtMicros == identity.providerUpdatedAt.microseconds else {
            throw Failure.invalidPendingToken
        }
        identity.issuer = configuration.identityIssuer
        return identity
    }

    /// OPERATION_NOT_ALLOWED for a provider that is not configured or not enabled.
    func enabledConfiguration(_ providerID: Text, tenantID: Text) throws -> ProviderConfiguration {
        guard let configuration = try configuration(providerID, tenantID: tenantID), configuration.provider.enabled
        else { throw Failure.providerNotEnabled(providerID) }
        return configuration
    }

    /// The identity these claims would make, if the provider said them. PROVIDER_NOT_FOUND, INVALID_CLAIMS.
    func identity(
        saying claimsJSON: [UInt8], providerID: Text, settings: TenantSettings,
        in transaction: borrowing ReadTransaction
    ) throws -> FederatedIdentity {
        guard providerID.byteCount <= 64,
            let configuration = try configuration(providerID, tenantID: settings.tenantID, in: transaction)
        else { throw Failure.providerNotFound }
        // A longer statement of a provider is not accepted either. This runs on an event loop.
        guard claimsJSON.count <= resources.limits.providerTokenMax else {
            throw Failure.invalid(
                .invalidClaims, field: "claims_json",
                "must have at most \(resources.limits.providerTokenMax) bytes")
        }
        guard let claims = try? JSONValue(parsing: claimsJSON),
            let (profile, isEmailTrusted) = try? client.explain(claims, configuration)
        else {
            throw Failure.invalid(.invalidClaims, field: "claims_json", "must be a JSON object with a sub")
        }
        var identity = FederatedIdentity(
            profile, providerID: providerID, isEmailTrusted: isEmailTrusted, form: settings.emailForm,
            limits: resources.limits)
        identity.issuer = configuration.identityIssuer
        return identity
    }

    /// The steps that Providers.Test reports. PROVIDER_NOT_FOUND.
    public func test(
        _ providerID: Text, tenantID: Text, now: Timestamp, deadline: Instant
    ) async throws -> [ProviderTestStep] {
        guard providerID.byteCount <= 64, let configuration = try configuration(providerID, tenantID: tenantID) else {
            throw Failure.providerNotFound
        }
        return try await client.test(configuration, now: now, deadline: deadline)
    }
}

extension ReadTransaction {
    /// A provider with which users may sign in, as it is in this transaction. OPERATION_NOT_ALLOWED.
    func enabledProvider(_ providerID: Text, tenantID: Text) throws -> Provider {
        let stored = try get(Tables.providers, TenantTextKey(tenantID, providerID))
        guard let provider = stored?.provider, provider.enabled else { throw Failure.providerNotEnabled(providerID) }
        return provider
    }
}

extension WriteTransaction {
    /// The identity providers of the account with which users may sign in, as they are in this transaction.
    public func enabledProviderIDs(of account: Account) throws -> [Text] {
        var enabled: [Text] = []
        for entry in account.user.providers where entry.isFederated && entry.providerID.byteCount <= 64 {
            let key = TenantTextKey(account.user.tenantID, entry.providerID)
            if try get(Tables.providers, key)?.provider?.enabled == true { enabled.append(entry.providerID) }
        }
        return enabled
    }
}

extension ProviderProof {
    /// Nil for a credential that no provider could prove.
    fileprivate init?(_ credential: IdpCredential) {
        switch credential.credential {
        case .providerIDToken(let token): self = .idToken(token)
        case .providerAccessToken(let token): self = .accessToken(token)
        case .authorizationCode(let code):
            self = .code(code, redirectURI: credential.redirectURI, verifier: credential.codeVerifier)
        case .pendingToken, nil: return nil
        }
    }
}

extension FederatedIdentity {
    /// The parts of a provider's statement that an account can hold. The rest is left out rather than refused, because
    /// the user cannot change it.
    init(_ profile: ProviderProfile, providerID: Text, isEmailTrusted: Bool, form: Email.Form, limits: Limits) {
        let email = Email(profile.email, form: form, limits: limits)?.address ?? .empty
        self.init(
            providerID: providerID, rawID: profile.subject, email: email,
            isEmailVerifiedByProvider: !email.isEmpty && profile.isEmailVerified == true,
            isEmailTrusted: !email.isEmpty && isEmailTrusted)
        if (try? Values.checkDisplayName(profile.displayName, limits: limits)) != nil {
            displayName = profile.displayName
        }
        if (try? Values.checkPhotoURL(profile.photoURL, limits: limits)) != nil { photoURL = profile.photoURL }
    }
}

extension Failure {
    /// How soon a provider that failed may be asked again.
    private static let retryInterval = Duration.seconds(10)

    fileprivate static func providerNotEnabled(_ providerID: Text) -> Failure {
        Failure(
            .operationNotAllowed, "The provider \(providerID) is not enabled for this tenant; an admin can do that.",
            metadata: [Entry("provider_id", providerID.string), .requiredRole(.tenantAdmin)])
    }

    init(_ error: FederationError, providerID: Text) {
        let provider = Entry("provider_id", providerID.string)
        func made(_ reason: Reason, _ message: String, _ detail: String) -> Failure {
            Failure(reason, message, metadata: [provider, Entry("detail", detail)])
        }
        func invalid(_ detail: String) -> Failure {
            made(.invalidIdpResponse, "The provider's credential is not valid here.", detail)
        }
        switch error {
        case .flawed(let flaw): self = invalid(flaw.rawValue)
        case .rejected: self = invalid("REJECTED")
        case .otherClient: self = invalid("OTHER_CLIENT")
        case .unboundToken: self = invalid("UNBOUND_ACCESS_TOKEN")
        case .misconfigured(let fault):
            self = made(
                .invalidIdpConfiguration,
                "The provider's configuration does not work; Providers.Test tells an admin more.", fault.rawValue)
        case .unavailable(let outage):
            self = made(
                .idpUnavailable, "The identity provider does not answer; try again.", outage.rawValue)
            retryAfter = Self.retryInterval
        case .overloaded:
            self = Failure(
                .serverOverloaded,
                "Too many sign-ins of this tenant wait for identity providers; try again.", metadata: [provider],
                retryAfter: .seconds(1))
        }
    }
}
