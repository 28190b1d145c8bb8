import Base
import Crypto
import Federation
import Messages
import Rules
import Store

extension IdentityName {
    /// Different names have different keys, because no `Text` holds a zero byte.
    func key(_ tenantID: Text) -> TenantHashKey {
        let issuer = issuer.isEmpty ? [] : [0] + issuer.bytes
        return TenantHashKey(tenantID, Digest.sha256(providerID.bytes + [0] + rawID.bytes + issuer))
    }
}

extension ReadTransaction {
    /// The uid of the account that an identity of the provider's present issuer belongs to.
    func owner(of name: IdentityName, tenantID: Text) throws -> [UInt8]? {
        if let owner = try get(Tables.userByProvider, name.key(tenantID)) { return owner }
        // Only a name with an issuer can have been stored under a former issuer, or without one.
        guard !name.issuer.isEmpty else { return nil }
        let issuers = try identityIssuers(of: name.providerID, tenantID: tenantID)
        let counting = issuers.counting(as: name.issuer)
        for former in counting.dropFirst() {
            if let owner = try get(Tables.userByProvider, name.named(former).key(tenantID)) { return owner }
        }
        guard issuers.countsUnnamed(as: counting) else { return nil }
        return try get(Tables.userByProvider, name.named(.empty).key(tenantID))
    }

    func identityIssuers(of providerID: Text, tenantID: Text) throws -> StoredIdentityIssuers {
        try get(Tables.identityIssuers, TenantTextKey(tenantID, providerID)) ?? StoredIdentityIssuers()
    }

    /// An identity that an admin vouches for, bound to the provider's present issuer unless it names one. It stays
    /// unnamed while the provider is not configured.
    func bound(_ entry: ProviderInfo, tenantID: Text) throws -> ProviderInfo {
        guard entry.isFederated, entry.issuer.isEmpty, entry.providerID.byteCount <= 64,
            let provider = try get(Tables.providers, TenantTextKey(tenantID, entry.providerID))?.provider,
            let issuer = ProviderConfiguration.identityIssuer(of: provider)
        else { return entry }
        var bound = entry
        bound.issuer = issuer
        return bound
    }
}

extension WriteTransaction {
    /// Keeps the issuer of the identities that were stored without one, before another issuer takes its place.
    func keepIssuerOfUnnamed(_ provider: Provider, tenantID: Text) throws {
        var issuers = try reading.identityIssuers(of: provider.providerID, tenantID: tenantID)
        guard issuers.unnamedIssuer.isEmpty, let issuer = ProviderConfiguration.identityIssuer(of: provider) else {
            return
        }
        issuers.unnamedIssuer = issuer
        try put(Tables.identityIssuers, TenantTextKey(tenantID, provider.providerID), issuers)
    }
}
