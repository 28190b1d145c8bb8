public import Base
public import Messages
import Rules
public import Store

/// A user that was found, where it lies in the database. Valid until the transaction that read it ends.
public struct FoundUser {
    public let uid: Text
    public let encoded: UnsafeRawBufferPointer
}

/// Finds users by the names that only one of them has, within one transaction. Looks each name up once, and reads each
/// user once, however many names the user has.
public struct UserFinder {
    /// Where a user is looked up. Names with the same place have the same user.
    private enum Place: Hashable {
        case uid(Text)
        case email(Email)
        case phoneNumber(Text)
        /// The user with the email, if there is a password.
        case password(Email)
        case identity(IdentityName)
    }

    private let tenantID: Text
    /// Nil for a place without a user.
    private var found: [Place: FoundUser?]

    public init(tenantID: Text) { (self.tenantID, found) = (tenantID, [:]) }

    /// The user with this name. The caller has checked the name.
    public mutating func user(named name: UserName, in transaction: borrowing ReadTransaction) throws -> FoundUser? {
        switch name.name {
        case nil: return nil
        case .uid(let uid): return try user(at: .uid(uid), in: transaction)
        case .email(let text):
            guard let email = Email(stored: text) else { return nil }
            return try user(at: .email(email), in: transaction)
        case .phoneNumber(let number): return try user(at: .phoneNumber(number), in: transaction)
        case .identity(let identity): return try user(of: identity.entry, in: transaction)
        }
    }

    /// The user that an identity belongs to. The identity is of the provider's present issuer, unless it names another.
    mutating func user(of identity: ProviderInfo, in transaction: borrowing ReadTransaction) throws -> FoundUser? {
        switch identity.providerID {
        case ProviderInfo.password:
            guard let email = Email(stored: identity.rawID) else { return nil }
            return try user(at: .password(email), in: transaction)
        case ProviderInfo.phone: return try user(at: .phoneNumber(identity.rawID), in: transaction)
        default:
            let bound = try transaction.bound(identity, tenantID: tenantID)
            return try user(at: .identity(IdentityName(bound)), in: transaction)
        }
    }

    private mutating func user(at place: Place, in transaction: borrowing ReadTransaction) throws -> FoundUser? {
        if let known = found[place] { return known }
        let user = try read(place, in: transaction)
        found.updateValue(user, forKey: place)
        return user
    }

    private mutating func read(_ place: Place, in transaction: borrowing ReadTransaction) throws -> FoundUser? {
        let owner: Text?
        switch place {
        case .uid(let uid):
            guard let user = try transaction.encodedUser(UserKey(tenantID, uid)) else { return nil }
            return FoundUser(uid: uid, encoded: user)
        case .password(let email):
            guard let user = try user(at: .email(email), in: transaction),
                try User(stored: user.encoded).providers.contains(where: { $0.providerID == ProviderInfo.password })
            else { return nil }
            return user
        case .email(let email): owner = try transaction.uid(ofEmail: email, tenantID: tenantID)
        case .phoneNumber(let number): owner = try transaction.uid(ofPhoneNumber: number, tenantID: tenantID)
        case .identity(let name):
            owner = try transaction.owner(of: name, tenantID: tenantID).map { Text(unchecked: $0) }
        }
        guard let owner else { return nil }
        return try user(at: .uid(owner), in: transaction)
    }
}

extension ReadTransaction {
    /// The user with this name, where it lies in the database. The caller has checked the name.
    public func encodedUser(named name: UserName, tenantID: Text) throws -> UnsafeRawBufferPointer? {
        var finder = UserFinder(tenantID: tenantID)
        return try finder.user(named: name, in: self)?.encoded
    }

    /// The uid of the user with a phone number in E.164 form.
    fileprivate func uid(ofPhoneNumber number: Text, tenantID: Text) throws -> Text? {
        try get(Tables.userByPhone, TenantTextKey(tenantID, number)).map { Text(unchecked: $0) }
    }
}
