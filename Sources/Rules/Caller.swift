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
    /// When the credential ends by itself; nil: never.
    public let expiresAt: Timestamp?
    /// The networks that an API key may be used from; empty: any.
    public let allowedNetworks: [IPNetwork]
    /// The SHA-256 of the API key's secret that was shown.
    public let secretHash: [UInt8]
    /// The id of the key that signed a service account's JWT.
    public let keyID: Text?
    /// The id of the mapping, for the holder of a certificate.
    public let certificateMappingID: Text?
    /// For an API key or a JWT that came over the connection of a certificate's holder: both callers.
    public let both: (shown: Caller, mapped: Caller)?

    /// `isPrevious`: the secret that was shown is the previous one.
    public init(_ key: ApiKey, secretHash: [UInt8] = [], isPrevious: Bool = false) {
        let ends = [key.expiresAtMicros, isPrevious ? key.previousSecretUntilMicros : 0].filter { $0 != 0 }
        self.expiresAt = ends.min().map { Timestamp(microseconds: $0) }
        self.secretHash = secretHash
        self.allowedNetworks = key.allowedAddresses.compactMap { IPNetwork($0.string) }
        self.id = key.apiKeyID
        self.role = key.role
        self.trustsEndUserIP = key.trustedEndUserIP
        self.tenantID = key.scope?.onlyTenantID
        self.quotas = key.quotas ?? CallerQuotas()
        self.exportsPasswordHashes = key.exportPasswordHashes
        self.keyID = nil
        self.certificateMappingID = nil
        self.both = nil
    }

    /// The holder of a certificate, which ends at `expiresAt`.
    public init(_ mapping: CertificateMapping, until expiresAt: Timestamp) {
        self.id = Text(unchecked: [UInt8]("certificate:".utf8) + mapping.certificateMappingID.bytes)
        self.role = mapping.role
        self.trustsEndUserIP = mapping.trustedEndUserIP
        self.tenantID = mapping.scope?.onlyTenantID
        self.quotas = mapping.quotas ?? CallerQuotas()
        self.exportsPasswordHashes = false
        self.expiresAt = expiresAt
        (self.allowedNetworks, self.secretHash) = ([], [])
        self.keyID = nil
        self.certificateMappingID = mapping.certificateMappingID
        self.both = nil
    }

    /// The caller of a credential that came over the connection of a certificate's holder, with the rights that both
    /// have. Throws INSUFFICIENT_PERMISSION where they are bound to different tenants.
    public init(_ shown: Caller, boundBy mapped: Caller) throws(Failure) {
        if let own = shown.tenantID, let other = mapped.tenantID, own != other {
            throw Failure(
                .insufficientPermission, "The credential and the connection's certificate are for different tenants.")
        }
        self.id = shown.id
        self.role = shown.role.rawValue <= mapped.role.rawValue ? shown.role : mapped.role
        self.trustsEndUserIP = shown.trustsEndUserIP && mapped.trustsEndUserIP
        self.tenantID = shown.tenantID ?? mapped.tenantID
        self.quotas = shown.quotas
        self.exportsPasswordHashes = shown.exportsPasswordHashes && mapped.exportsPasswordHashes
        self.expiresAt = [shown.expiresAt, mapped.expiresAt].compactMap(\.self).min()
        self.allowedNetworks = shown.allowedNetworks
        self.secretHash = shown.secretHash
        self.keyID = shown.keyID
        self.certificateMappingID = nil
        self.both = (shown, mapped)
    }

    public init(_ account: ServiceAccount, keyID: Text, until expiresAt: Timestamp) {
        self.id = account.email
        self.role = account.role
        self.trustsEndUserIP = account.trustedEndUserIP
        self.tenantID = account.scope?.onlyTenantID
        self.quotas = account.quotas ?? CallerQuotas()
        self.exportsPasswordHashes = false
        self.expiresAt = expiresAt
        (self.allowedNetworks, self.secretHash) = ([], [])
        self.keyID = keyID
        self.certificateMappingID = nil
        self.both = nil
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
