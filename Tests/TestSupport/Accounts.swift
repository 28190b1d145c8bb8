public import Base
public import Messages
public import Rules

/// An account of the tenant "acme" as it would be stored.
public func account(
    _ uid: Text = "u1", tenantID: Text = "acme", email: Text = "", phoneNumber: Text = "", passwordHash: Text = "",
    providers: [ProviderInfo] = [], _ change: (inout User) -> Void = { _ in }
) -> Account {
    var user = User(tenantID: tenantID, uid: uid, email: email, phoneNumber: phoneNumber, providers: providers)
    change(&user)
    var account = Account(user: user, passwordHash: passwordHash)
    account.deriveProviders()
    return account
}

/// Settings as a tenant would publish them.
public func tenantSettings(
    tenantID: Text = "acme", _ change: (inout Messages.Tenant) -> Void = { _ in }
) -> TenantSettings {
    var tenant = TenantSettings.defaults(tenantID: tenantID, now: .zero)
    change(&tenant)
    return TenantSettings(StoredTenant(tenant: tenant, secret: [UInt8](repeating: 5, count: 32)))
}
