public import Base
public import Messages
public import Rules
public import Store

extension ReadTransaction {
    public func user(_ key: UserKey) throws -> User? {
        guard let bytes = try encodedUser(key) else { return nil }
        return try User(stored: bytes)
    }

    /// The user as it is sent, where it lies in the database; valid while this transaction lasts.
    public func encodedUser(_ key: UserKey) throws -> UnsafeRawBufferPointer? {
        try borrowedValue(Tables.users, key).map { Account.encodedUser(in: $0) }
    }

    public func uid(ofEmail email: Email, tenantID: Text) throws -> Text? {
        try get(Tables.userByEmail, TenantTextKey(tenantID, email.canonical)).map { Text(unchecked: $0) }
    }

    public func uid(ofPhone number: PhoneNumber, tenantID: Text) throws -> Text? {
        try get(Tables.userByPhone, TenantTextKey(tenantID, number.text)).map { Text(unchecked: $0) }
    }

    public func account(phone number: PhoneNumber, tenantID: Text) throws -> Account? {
        guard let uid = try uid(ofPhone: number, tenantID: tenantID) else { return nil }
        return try account(UserKey(tenantID, uid))
    }

    /// The newest use of any of the user's sessions; 0 when there is none.
    public func lastRefresh(tenantID: Text, uid: Text) throws -> Int64 {
        var newest: Int64 = 0
        for id in try sessionIDs(of: UserKey(tenantID, uid)) {
            newest = max(newest, try get(Tables.sessions, SessionKey(id))?.lastUsedAtMicros ?? 0)
        }
        return newest
    }

    public func account(_ key: UserKey) throws -> Account? {
        try get(Tables.users, key).map { try Account($0) }
    }

    func account(email: Email, tenantID: Text) throws -> Account? {
        guard let uid = try uid(ofEmail: email, tenantID: tenantID) else { return nil }
        return try account(UserKey(tenantID, uid))
    }

    /// Does what `account(email:tenantID:)` does, and reads as much for an unknown address as for a known one.
    func accountReadAlike(email: Email, tenantID: Text) throws -> Account? {
        if let account = try account(email: email, tenantID: tenantID) { return account }
        _ = try exists(Tables.users, UserKey(tenantID, "nobody"))
        _ = try Account(StoredUser(stored: DecoyAccount.record))
        return nil
    }
}

/// The record of an ordinary user, which is decoded where there is no user.
private enum DecoyAccount {
    static let record: [UInt8] = {
        var user = User(tenantID: "tenant", uid: "0123456789012345678901234567")
        user.email = "somebody@example.com"
        var account = Account(user: user, passwordHash: "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$")
        account.deriveProviders()
        return account.record.encoded()
    }()
}
