public import Base
public import Crypto
import Federation
public import Messages
public import Outbound
import Rules
public import Store

/// The identity providers of all tenants: their configurations, and the proof of the credentials that applications
/// bring from them.
///
/// The configuration made of a provider's row is kept until the row changes. Client secrets are sealed in the store,
/// opened when they are sent, and sent only to their provider. Any thread.
public final class IdentityProviders: Sendable {
    let resources: Resources
    let client: ProviderClient
    private let sealing: SealingKey
    private let configurations: RowCopies<TenantTextKey, StoredProvider, ProviderConfiguration?>
    private static let configurationsMax = 1_024
    /// A usual row has a few hundred bytes; the configuration made of it takes a few times as much.
    private static let rowByteCountMax = 4_096

    public init(resources: Resources, sealing: SealingKey, http: HTTPClient) {
        self.resources = resources
        self.sealing = sealing
        self.client = ProviderClient(client: http, limits: resources.limits)
        self.configurations = RowCopies(
            "providers", of: Tables.providers, in: resources.store, countMax: Self.configurationsMax,
            rowByteCountMax: Self.rowByteCountMax
        ) { key, stored in
            Self.configuration(of: stored, key, sealing)
        }
    }

    /// The number of providers with data in memory: those that somebody signed in with lately.
    public var cachedProviderCount: Int { client.cachedProviderCount }

    /// Keys of providers that a token needed and that were checked for it.
    public var checkedKeys: Counter { client.checkedKeys }
    public var requestCounts: ProviderRequestCounts { ProviderRequestCounts(client.counts) }
    /// How often the data of a provider was not read, because its tenant had spent its time for that.
    public var refusedKeyTimes: Counter { client.refusedKeyTimes }

    /// Creates a provider. The refusals of `ProviderRules`, PROVIDER_ID_EXISTS, TOO_MANY_PROVIDERS.
    public func create(
        _ wanted: Provider, tenantID: Text, isDisabled: Bool, isProjectAdmin: Bool, validateOnly: Bool, origin: Origin
    ) async throws -> Provider {
        var made = wanted
        made.clientSecret = .empty
        made.hasClientSecret = !wanted.clientSecret.isEmpty
        made.enabled = !isDisabled
        let now = resources.clock.now()
        made.createdAtMicros = now.microseconds
        made.updatedAtMicros = now.microseconds
        made.revision = 1
        try ProviderRules.check(made, limits: resources.limits)
        try ProviderRules.checkSecret(wanted.clientSecret, of: made)
        try ProviderRules.checkReach(made, isProjectAdmin: isProjectAdmin)
        let (provider, sealed) = (made, try seal(wanted.clientSecret, providerID: made.providerID, tenantID: tenantID))
        let providersMax = resources.limits.providersPerTenantMax
        return try await resources.store.write { transaction in
            _ = try transaction.reading.liveTenant(tenantID)
            return try transaction.answeringRepeat(of: origin, validateOnly: validateOnly, now: now) {
                let key = TenantTextKey(tenantID, provider.providerID)
                guard try !transaction.exists(Tables.providers, key) else {
                    throw Failure(
                        .providerIDExists,
                        "The tenant has a provider \(provider.providerID) already; update it instead.")
                }
                let present = try transaction.reading.providers(tenantID: tenantID, limit: providersMax)
                guard present.count < providersMax else {
                    throw Failure(
                        .tooManyProviders, "A tenant has at most \(providersMax) providers.")
                }
                if validateOnly { return provider }
                try transaction.put(
                    Tables.providers, key, StoredProvider(provider: provider, sealedClientSecret: sealed))
                try transaction.appendEvent(
                    .providerCreated, tenantID: tenantID, origin: origin, detail: provider.providerID, now: now)
                return provider
            }
        }
    }

    /// Changes the masked fields. PROVIDER_NOT_FOUND, CLIENT_SECRET_REQUIRED, the refusals of `ProviderRules`.
    public func update(
        _ change: ProviderChange, tenantID: Text, isProjectAdmin: Bool, validateOnly: Bool, origin: Origin
    ) async throws -> Provider {
        let providerID = change.wanted.providerID
        let now = resources.clock.now()
        let secret = try NewClientSecret(change.wanted.clientSecret, of: providerID)
        let sealed = try seal(change.wanted.clientSecret, providerID: providerID, tenantID: tenantID)
        let limits = resources.limits
        return try await resources.store.write { transaction in
            _ = try transaction.reading.liveTenant(tenantID)
            return try transaction.answeringRepeat(of: origin, validateOnly: validateOnly, now: now) {
                var stored = try transaction.reading.storedProvider(providerID, tenantID: tenantID)
                let old = stored.provider ?? Provider()
                var new = old
                change.apply(to: &new)
                try ProviderRules.check(new, limits: limits)
                let keepsSecret = !change.changesSecret && !stored.sealedClientSecret.isEmpty
                if change.changesSecret { try ProviderRules.checkSecret(secret, of: new) }
                if keepsSecret, ProviderRules.changesKindOfSecret(old, new) { throw Failure.secretOfOtherKind }
                if ProviderRules.sendsSecretElsewhere(old, new) {
                    try ProviderRules.checkReach(new, isProjectAdmin: isProjectAdmin)
                    // An admin who may not read the secret may not have it sent somewhere either.
                    if keepsSecret { throw Failure.secretSentElsewhere }
                }
                new.updatedAtMicros = max(now.microseconds, old.updatedAtMicros + 1)
                new.revision += 1
                if validateOnly { return new }
                if ProviderConfiguration.identityIssuer(of: old) != ProviderConfiguration.identityIssuer(of: new) {
                    try transaction.keepIssuerOfUnnamed(old, tenantID: tenantID)
                }
                stored.provider = new
                if change.changesSecret { stored.sealedClientSecret = sealed }
                try transaction.put(Tables.providers, TenantTextKey(tenantID, providerID), stored)
                let detail = Text(unchecked: providerID.bytes + [UInt8(ascii: ":")] + change.fieldNames.bytes)
                try transaction.appendEvent(
                    .providerUpdated, tenantID: tenantID, origin: origin, detail: detail, now: now)
                return new
            }
        }
    }

    /// Deletes a provider; the identities its users have stay linked. PROVIDER_NOT_FOUND.
    public func delete(_ providerID: Text, tenantID: Text, validateOnly: Bool, origin: Origin) async throws {
        let now = resources.clock.now()
        try await resources.store.write { transaction in
            _ = try transaction.answeringRepeat(of: origin, validateOnly: validateOnly, now: now) {
                let stored = try transaction.reading.storedProvider(providerID, tenantID: tenantID)
                if validateOnly { return ProvidersDeleteResponse() }
                // Users of another issuer must not enter these accounts when the id is used again.
                if let old = stored.provider { try transaction.keepIssuerOfUnnamed(old, tenantID: tenantID) }
                try transaction.delete(Tables.providers, TenantTextKey(tenantID, providerID))
                try transaction.appendEvent(
                    .providerDeleted, tenantID: tenantID, origin: origin, detail: providerID, now: now)
                return ProvidersDeleteResponse()
            }
        }
    }

    /// A provider's configuration; nil when the tenant has none of this id.
    func configuration(_ providerID: Text, tenantID: Text) throws -> ProviderConfiguration? {
        try resources.store.read { try configuration(providerID, tenantID: tenantID, in: $0) }
    }

    func configuration(
        _ providerID: Text, tenantID: Text, in transaction: borrowing ReadTransaction
    ) throws -> ProviderConfiguration? {
        try configurations.value(TenantTextKey(tenantID, providerID), in: transaction)?.value
    }

    private static func configuration(
        of stored: StoredProvider, _ key: TenantTextKey, _ sealing: SealingKey
    ) -> ProviderConfiguration? {
        guard let provider = stored.provider else { return nil }
        let context = context(providerID: key.text, tenantID: key.tenant)
        let sealed = stored.sealedClientSecret
        return ProviderConfiguration(tenantID: key.tenant, provider: provider, hasClientSecret: !sealed.isEmpty) {
            try sealing.open(sealed, context: context)
        }
    }

    private func seal(_ secret: Secret, providerID: Text, tenantID: Text) throws -> [UInt8] {
        guard !secret.isEmpty else { return [] }
        let context = Self.context(providerID: providerID, tenantID: tenantID)
        return try sealing.seal(secret, context: context, random: resources.random)
    }

    /// A secret is sealed for this place only: a secret that is moved to another row does not open there.
    private static func context(providerID: Text, tenantID: Text) -> [UInt8] {
        Array("provider client secret".utf8) + [0] + tenantID.bytes + [0] + providerID.bytes
    }
}

extension ReadTransaction {
    /// A provider as Providers.Get answers it. PROVIDER_NOT_FOUND.
    public func provider(_ providerID: Text, tenantID: Text) throws -> Provider {
        try storedProvider(providerID, tenantID: tenantID).provider ?? Provider()
    }

    /// Providers in the order of their ids, at most `limit`.
    func providers(tenantID: Text, limit: Int) throws -> [Provider] {
        var providers: [Provider] = []
        try scan(Tables.providers, prefix: TenantPrefix(tenantID), limit: limit) { row in
            if let provider = try row.record.provider { providers.append(provider) }
            return true
        }
        return providers
    }

    func storedProvider(_ providerID: Text, tenantID: Text) throws -> StoredProvider {
        // A string longer than any id would not even be a key.
        guard providerID.byteCount <= 64, let stored = try get(Tables.providers, TenantTextKey(tenantID, providerID))
        else { throw Failure.providerNotFound }
        return stored
    }
}

extension Failure {
    static let providerNotFound = Failure(.providerNotFound, "The tenant has no identity provider of this id.")

    fileprivate static let secretSentElsewhere = Failure.invalid(
        .clientSecretRequired, field: "provider.client_secret",
        "must be given again when issuer, endpoints or allow_ fields change: it would be sent there")

    fileprivate static let secretOfOtherKind = Failure.invalid(
        .clientSecretRequired, field: "provider.client_secret",
        "must be given again when `apple` is set or removed: Apple's private key would be sent as a secret, or the "
            + "secret taken for a private key")
}
