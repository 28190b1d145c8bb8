public import Base
import Federation
import Messages
import Rules
import Store

extension IdentityProviders {
    /// Counts identities of `issuer` as those of the provider's present issuer, because it is the same provider.
    /// Returns the issuers whose identities count now. PROVIDER_NOT_FOUND, INVALID_ISSUER, TOO_MANY_REBINDINGS.
    public func rebind(
        _ providerID: Text, from issuer: Text, tenantID: Text, validateOnly: Bool, origin: Origin
    ) async throws -> [Text] {
        try Values.checkIdentityIssuer(issuer, field: "from_issuer")
        let now = resources.clock.now()
        let answer = try await resources.store.write { transaction in
            _ = try transaction.reading.liveTenant(tenantID)
            return try transaction.answeringRepeat(of: origin, validateOnly: validateOnly, now: now) {
                let key = TenantTextKey(tenantID, providerID)
                let stored = try transaction.reading.storedProvider(providerID, tenantID: tenantID)
                guard let present = stored.provider.flatMap({ ProviderConfiguration.identityIssuer(of: $0) }),
                    !issuer.isEmpty, issuer != present
                else {
                    throw Failure.invalid(
                        .invalidIssuer, field: "from_issuer", "must be an issuer that the provider had before")
                }
                var issuers = try transaction.reading.identityIssuers(of: providerID, tenantID: tenantID)
                let counting = issuers.counting(as: present)
                if counting.contains(issuer) { return ProvidersRebindResponse(issuers: counting) }
                guard issuers.rebindings.count < StoredIdentityIssuers.rebindingsMax else {
                    throw Failure(
                        .tooManyRebindings,
                        "A provider is rebound at most \(StoredIdentityIssuers.rebindingsMax) times; make another one.")
                }
                issuers.rebindings.append(StoredRebinding(fromIssuer: issuer, toIssuer: present))
                if !validateOnly {
                    try transaction.put(Tables.identityIssuers, key, issuers)
                    let detail = Text(unchecked: providerID.bytes + [UInt8(ascii: ":")] + issuer.bytes)
                    try transaction.appendEvent(
                        .providerRebound, tenantID: tenantID, origin: origin, detail: detail, now: now)
                }
                return ProvidersRebindResponse(issuers: issuers.counting(as: present))
            }
        }
        return answer.issuers
    }
}
