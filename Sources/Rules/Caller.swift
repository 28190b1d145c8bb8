public import Base
public import Messages

/// The caller of a request: an API key, a service account or the holder of a certificate, with a role and a scope.
/// Immutable.
public final class Caller: Sendable {
    /// The API key's id, the service account's email, or `certificate:` and the mapping's id: the three kinds never
    /// look alike.
    public let id: Text
    public let role: Role
    /// Nil: all tenants. Otherwise this one only; "" is the default pool.
    public let tenantID: Text?
    /// Whether `end_user_ip` in its requests is believed.
    public let trustsEndUserIP: Bool
    /// Whether it may export password hashes.
    public let exportsPasswordHashes: Bool
    /// The quotas that a project-admin set for this credential; 0 = the server's defaults.
    public let quotas: CallerQuotas
    /// The credential to whose quotas the caller's changes are charged as well: it made or rotated this API key. Mostly
    /// nil.
    public let quotaOwner: QuotaHolder?
    /// When the credential ends by itself; nil: never.
    public let expiresAt: Timestamp?
    /// The networks that an API key may be used from; empty: any.
    public let allowedNetworks: [IPNetwork]
    /// What the caller showed.
    public let credential: Credential

    /// The beginning of the ids of certificates' holders.
    public static let certificatePrefix = [UInt8]("certificate:".utf8)

    /// What a caller shows, and what is needed to check it again.
    public enum Credential: Sendable {
        /// `secretHash`: the SHA-256 of the secret that was shown.
        case apiKey(secretHash: [UInt8])
        /// A JWT of a service account. `keyID`: the key that signed it.
        case serviceAccount(keyID: Text)
        case certificate(mappingID: Text)
        /// An API key or a JWT that came over the connection of a certificate's holder: both callers, each of which has
        /// one credential.
        case both(shown: Caller, mapped: Caller)
    }

    private init(
        id: Text, role: Role, tenantID: Text?, trustsEndUserIP: Bool, exportsPasswordHashes: Bool = false,
        quotas: CallerQuotas?, quotaOwner: QuotaHolder? = nil, expiresAt: Timestamp?,
        allowedNetworks: [IPNetwork] = [], credential: Credential
    ) {
        self.id = id
        self.role = role
        self.tenantID = tenantID
        self.trustsEndUserIP = trustsEndUserIP
        self.exportsPasswordHashes = exportsPasswordHashes
        self.quotas = quotas ?? CallerQuotas()
        self.quotaOwner = quotaOwner
        self.expiresAt = expiresAt
        self.allowedNetworks = allowedNetworks
        self.credential = credential
    }

    /// `isPrevious`: the secret that was shown is the previous one.
    public convenience init(
        _ key: ApiKey, quotaOwner: QuotaHolder? = nil, secretHash: [UInt8] = [], isPrevious: Bool = false
    ) {
        let ends = [key.expiresAtMicros, isPrevious ? key.previousSecretUntilMicros : 0].filter { $0 != 0 }
        self.init(
            id: key.apiKeyID, role: key.role, tenantID: key.scope?.onlyTenantID, trustsEndUserIP: key.trustedEndUserIP,
            exportsPasswordHashes: key.exportPasswordHashes, quotas: key.quotas, quotaOwner: quotaOwner,
            expiresAt: ends.min().map { Timestamp(microseconds: $0) },
            allowedNetworks: key.allowedAddresses.compactMap { IPNetwork($0.string) },
            credential: .apiKey(secretHash: secretHash))
    }

    /// The holder of a JWT, which ends at `expiresAt`, signed by the account's key `keyID`.
    public convenience init(_ account: ServiceAccount, keyID: Text, until expiresAt: Timestamp) {
        self.init(
            id: account.email, role: account.role, tenantID: account.scope?.onlyTenantID,
            trustsEndUserIP: account.trustedEndUserIP, quotas: account.quotas, expiresAt: expiresAt,
            credential: .serviceAccount(keyID: keyID))
    }

    /// The holder of a certificate, which ends at `expiresAt`.
    public convenience init(_ mapping: CertificateMapping, until expiresAt: Timestamp) {
        let mappingID = mapping.certificateMappingID
        self.init(
            id: Text(unchecked: Self.certificatePrefix + mappingID.bytes), role: mapping.role,
            tenantID: mapping.scope?.onlyTenantID, trustsEndUserIP: mapping.trustedEndUserIP, quotas: mapping.quotas,
            expiresAt: expiresAt, credential: .certificate(mappingID: mappingID))
    }

    /// The caller of a credential that came over the connection of a certificate's holder, with the rights that both
    /// have. Throws INSUFFICIENT_PERMISSION where they are bound to different tenants.
    public convenience init(_ shown: Caller, boundBy mapped: Caller) throws(Failure) {
        if let own = shown.tenantID, let other = mapped.tenantID, own != other {
            throw Failure(
                .insufficientPermission, "The credential and the connection's certificate are for different tenants.")
        }
        self.init(
            id: shown.id, role: shown.role.rawValue <= mapped.role.rawValue ? shown.role : mapped.role,
            tenantID: shown.tenantID ?? mapped.tenantID,
            trustsEndUserIP: shown.trustsEndUserIP && mapped.trustsEndUserIP,
            exportsPasswordHashes: shown.exportsPasswordHashes && mapped.exportsPasswordHashes, quotas: shown.quotas,
            quotaOwner: shown.quotaOwner, expiresAt: [shown.expiresAt, mapped.expiresAt].compactMap(\.self).min(),
            allowedNetworks: shown.allowedNetworks, credential: .both(shown: shown, mapped: mapped))
    }

    /// The caller of the API key or the JWT alone, where the connection's certificate limits it.
    public var shown: Caller {
        if case .both(let shown, _) = credential { shown } else { self }
    }

    /// Whether the caller showed the secret of an API key.
    public var hasSecret: Bool {
        if case .apiKey(let secretHash) = shown.credential { !secretHash.isEmpty } else { false }
    }

    /// Whether the present record of the account still gives this caller the same rights.
    public func isStill(_ account: ServiceAccount) -> Bool {
        id == account.email && !account.disabled && role == account.role && tenantID == account.scope?.onlyTenantID
    }

    /// Whether the present record of the mapping still gives this caller the same rights.
    public func isStill(_ mapping: CertificateMapping) -> Bool {
        role == mapping.role && tenantID == mapping.scope?.onlyTenantID
    }

    /// The metadata key under which a refusal names the requested tenant.
    public static let requestedTenantKey = "requested_tenant"

    /// A role includes the lower ones.
    public func has(_ role: Role) -> Bool { self.role.rawValue >= role.rawValue }

    /// The tenant a request means: the one it names, else the caller's own, else the default pool. Throws
    /// INSUFFICIENT_PERMISSION outside of the caller's scope.
    public func tenant(requested: Text) throws(Failure) -> Text {
        guard let tenantID else { return requested }
        guard requested.isEmpty || requested == tenantID else {
            // A string that is too long for a tenant's id is not named.
            let named = requested.byteCount <= 64 ? [Failure.Entry(Self.requestedTenantKey, requested.string)] : []
            throw Failure(
                .insufficientPermission,
                "This credential is bound to another tenant; use one of tenant \"\(requested)\" or of all tenants.",
                metadata: named)
        }
        return tenantID
    }

    /// Checks that the caller may connect from `peer`, a numeric address. ADDRESS_NOT_ALLOWED.
    public func checkAddress(_ peer: Text) throws(Failure) {
        guard !allowedNetworks.isEmpty else { return }
        let address = peer.byteCount <= EndUserAddress.byteCountMax ? IPAddress(peer.string) : nil
        guard let address, allowedNetworks.contains(where: { $0.contains(address) }) else {
            throw Failure(.addressNotAllowed, "This API key may not be used from this address.")
        }
    }

    /// The log of the default pool is the project's, too. PROJECT_EVENTS_NOT_ALLOWED.
    public func requireEvents(of tenantID: Text) throws(Failure) {
        guard !tenantID.isEmpty || has(.projectAdmin) else {
            throw Failure(
                .projectEventsNotAllowed,
                "The event log of the default pool is the project's as well, and needs a project-admin.")
        }
    }

    /// Throws INSUFFICIENT_PERMISSION below `role`.
    public func require(_ role: Role) throws(Failure) {
        guard has(role) else {
            throw Failure(
                .insufficientPermission,
                "This call needs the role \(role.name); the credential has \(self.role.name).",
                metadata: [.requiredRole(role), Failure.Entry("role", self.role.name)])
        }
    }
}

extension Scope {
    /// Nil: all tenants.
    fileprivate var onlyTenantID: Text? { if case .tenantID(let tenantID) = tenants { tenantID } else { nil } }
}

extension Failure {
    public static let apiKeyExpired = Failure(
        .apiKeyExpired, "The time of this API key, or of this secret of it, is over.")

    /// The caller's own credential is missing, unknown or revoked; says nothing about end users.
    public static let callerUnauthenticated = Failure(
        .callerUnauthenticated,
        "Send a valid API key or a service account's JWT as metadata `authorization: Bearer …`.")
}
