public import Base
import Identity
import Messages
public import Rules
import Store

extension TestServer {
    /// A pending token for an identity: as good as what a provider proves now, and no provider has to run.
    ///
    /// The provider is configured if the tenant has none of its id.
    public func pendingToken(for identity: FederatedIdentity, tenantID: Text = .empty) -> Text {
        var proved = identity
        proved.providerUpdatedAt = providerUpdatedAt(identity.providerID, tenantID)
        let token = try? project.pendingCredentials.token(for: proved, tenantID: tenantID, now: project.clock.now())
        guard let token else { preconditionFailure("the identity is too long to seal") }
        return token
    }

    private func providerUpdatedAt(_ providerID: Text, _ tenantID: Text) -> Timestamp {
        let key = TenantTextKey(tenantID, providerID)
        let now = clock.clock.now()
        let stored = try? project.store.writeBlocking { transaction in
            if let stored = try transaction.get(Tables.providers, key) { return stored }
            var provider = Provider()
            provider.providerID = providerID
            provider.clientID = "client-1"
            provider.enabled = true
            provider.createdAtMicros = now.microseconds
            provider.updatedAtMicros = now.microseconds
            let made = StoredProvider(provider: provider)
            try transaction.put(Tables.providers, key, made)
            return made
        }
        guard let provider = stored?.provider else { preconditionFailure("no provider could be stored") }
        return Timestamp(microseconds: provider.updatedAtMicros)
    }
}
