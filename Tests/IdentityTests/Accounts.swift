import Base
import Messages

@testable import Identity

/// An account of the tenant "acme" as it would be stored.
func account(
    _ uid: Text = "u1", tenantID: Text = "acme", email: Text = "", phoneNumber: Text = "", passwordHash: Text = "",
    providers: [ProviderInfo] = [], _ change: (inout User) -> Void = { _ in }
) -> Account {
    var user = User(tenantID: tenantID, uid: uid, email: email, phoneNumber: phoneNumber, providers: providers)
    change(&user)
    var account = Account(user: user, passwordHash: passwordHash)
    account.deriveProviders()
    return account
}
