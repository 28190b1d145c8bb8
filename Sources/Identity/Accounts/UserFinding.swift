public import Base
public import Messages
import Rules
public import Store

// Finding users by the names that only one of them has.

extension ReadTransaction {
    /// The user with this name, where it lies in the database. The caller has checked the name.
    public func encodedUser(named name: UserName, tenantID: Text) throws -> UnsafeRawBufferPointer? {
        try uid(named: name, tenantID: tenantID).flatMap { try encodedUser(UserKey(tenantID, $0)) }
    }

    /// The uid of the user with this name. A name that is a uid is returned as it is, whether there is such a user or
    /// not.
    public func uid(named name: UserName, tenantID: Text) throws -> Text? {
        switch name.name {
        case nil: nil
        case .uid(let uid): uid
        case .email(let email): try Email(stored: email).flatMap { try uid(ofEmail: $0, tenantID: tenantID) }
        case .phoneNumber(let number): try uid(ofPhoneNumber: number, tenantID: tenantID)
        case .identity(let identity): try uid(of: identity.entry, tenantID: tenantID)
        }
    }

    /// The uid of the user with a phone number in E.164 form.
    public func uid(ofPhoneNumber number: Text, tenantID: Text) throws -> Text? {
        try get(Tables.userByPhone, TenantTextKey(tenantID, number)).map { Text(unchecked: $0) }
    }

    /// The uid of the user that an identity belongs to. The identity is of the provider's present issuer, unless it
    /// names another.
    public func uid(of identity: ProviderInfo, tenantID: Text) throws -> Text? {
        switch identity.providerID {
        case "password":
            guard let email = Email(stored: identity.rawID), let uid = try uid(ofEmail: email, tenantID: tenantID),
                let user = try user(UserKey(tenantID, uid)),
                user.providers.contains(where: { $0.providerID == "password" })
            else { return nil }
            return uid
        case "phone": return try uid(ofPhoneNumber: identity.rawID, tenantID: tenantID)
        default:
            let bound = try bound(identity, tenantID: tenantID)
            return try owner(of: IdentityName(bound), tenantID: tenantID).map { Text(unchecked: $0) }
        }
    }
}
