import Base
import Crypto
import Messages
import Rules
import Store

// The only functions that add, change and remove accounts: each writes record, unique indexes, counts and event
// together. Each checks everything before its first put, so that a refused write has changed nothing.

extension ReadTransaction {
    /// The settings of a tenant that exists and is not deleted.
    func liveTenant(_ tenantID: Text) throws -> StoredTenant {
        guard let record = try get(Tables.tenants, TenantPrefix(tenantID)), !record.deleted else {
            throw Failure.tenantNotFound(tenantID)
        }
        return record
    }

    /// TENANT_NOT_FOUND in the same cases as `liveTenant`.
    func requireLiveTenant(_ tenantID: Text) throws {
        guard try isLiveTenant(tenantID) else { throw Failure.tenantNotFound(tenantID) }
    }

    /// Whether the tenant exists and is not deleted. Every new account makes this check, so it does not decode the
    /// settings, which are most of the record.
    func isLiveTenant(_ tenantID: Text) throws -> Bool {
        let isDeleted = try withValue(Tables.tenants, TenantPrefix(tenantID)) { record in
            // A record whose MAC is right is the message that was put.
            firstVarint(StoredTenant.FieldNumber.deleted, in: record) ?? 0 != 0
        }
        return isDeleted == false
    }
}

extension WriteTransaction {
    /// Adds an account. DUPLICATE_LOCAL_ID, EMAIL_EXISTS, PHONE_NUMBER_EXISTS,
    /// FEDERATED_USER_ID_ALREADY_LINKED.
    func insert(_ account: Account, origin: Origin, kind: EventKind = .userCreated, now: Timestamp) throws {
        let key = UserKey(account.user.tenantID, account.user.uid)
        let names = try checkInsertable(account)
        try put(Tables.users, key, account.record)
        try putIndexes(names, key: key)
        try put(Tables.userByCreation, account.user.creationKey, [])
        try countPasswordHash(account.passwordHash, tenantID: key.tenant, by: 1)
        try appendEvent(kind, tenantID: key.tenant, uid: key.uid, origin: origin, now: now)
    }

    /// Puts a new account of an end user that has no way to sign in again on the list by which unused anonymous users
    /// are found. The user of a custom token is not one, nor is a user whom an admin makes.
    func noteIfAnonymous(_ account: Account) throws {
        guard account.hasNoWayIn else { return }
        try put(Tables.anonymousUsers, UserKey(account.user.tenantID, account.user.uid), [])
    }

    /// Adds an account whose uid somebody chose. Returns the account as it was added.
    ///
    /// The uid may have been another account's. Verifiers refuse the uid's tokens from before that account's deletion,
    /// which may be later than `account` and `now`: the account may have been deleted while the call hashed a password
    /// or waited for the writer, and in a cluster the clock of the node that deleted it may be ahead. So the new
    /// account's tokens begin after the tenant's last revocation, which is not earlier: revocations are not indexed by
    /// uid, and their times increase.
    func insertUnderChosenUID(
        _ account: Account, origin: Origin, kind: EventKind = .userCreated, now: Timestamp
    ) throws -> Account {
        var account = account
        if let last = try reading.lastRevocationTime(of: account.user.tenantID) {
            let afterLast = last.microseconds &+ 1
            account.user.tokensValidAfterMicros = max(account.user.tokensValidAfterMicros, afterLast)
        }
        if kind == .userImported {
            account.importedAt = Timestamp(microseconds: account.user.tokensValidAfterMicros)
        }
        try insert(account, origin: origin, kind: kind, now: now)
        return account
    }

    /// Replaces an account by a changed one, and updates its indexes.
    func replace(
        _ old: Account, by new: Account, origin: Origin, kind: EventKind, detail: Text = .empty, now: Timestamp
    ) throws {
        let key = UserKey(old.user.tenantID, old.user.uid)
        // Most changes leave the names as they are. Each name that is written costs a page of its own, which is copied
        // and synced.
        if !UniqueNames.areSame(old, new) {
            let (oldNames, newNames) = (UniqueNames(old), UniqueNames(new))
            let added = newNames.subtracting(oldNames)
            try checkUnique(added, key: key)
            try deleteIndexes(oldNames.subtracting(newNames), key: key)
            try putIndexes(added, key: key)
        }
        if old.user.createdAtMicros != new.user.createdAtMicros {
            try delete(Tables.userByCreation, old.user.creationKey)
            try put(Tables.userByCreation, new.user.creationKey, [])
        }
        try put(Tables.users, key, new.record)
        try voidCodes(of: old, changedTo: new, kind)
        if old.passwordHash != new.passwordHash {
            try countPasswordHash(old.passwordHash, tenantID: key.tenant, by: -1)
            try countPasswordHash(new.passwordHash, tenantID: key.tenant, by: 1)
        }
        let validAfter = new.user.tokensValidAfterMicros
        if validAfter > old.user.tokensValidAfterMicros {
            try revokeTokens(of: key, before: Timestamp(microseconds: validAfter), now: now)
        }
        try appendEvent(kind, tenantID: key.tenant, uid: key.uid, origin: origin, detail: detail, now: now)
    }

    /// Voids the codes that the change makes void: somebody who is to be kept out may have read them (decision 0011).
    ///
    /// A code for a new password does not count again if its address comes back to the account.
    private func voidCodes(of old: Account, changedTo new: Account, _ kind: EventKind) throws {
        let isEmailChange = new.hasOtherEmail(than: old)
        let isDisabling = new.user.disabled && !old.user.disabled
        if isEmailChange {
            try noteLeft(old.user.email, account: old.key)
            try removeSignInLinks(toEmailOf: old)
        }
        // By whatever way the password came, linking it to an account without one included.
        let setsPassword = kind.setsPassword || new.passwordUpdatedAt != old.passwordUpdatedAt
        if isEmailChange || isDisabling || setsPassword {
            try removeOobCodes(of: old.key, .passwordReset)
        }
        if kind.setsPasswordFromOutside { try removeSignInLinks(toEmailOf: new) }
    }

    /// Removes an account with its sessions and codes: those must not reach a new account with the same uid.
    func remove(_ account: Account, origin: Origin, detail: Text = .empty, now: Timestamp) throws {
        let key = UserKey(account.user.tenantID, account.user.uid)
        try deleteIndexes(UniqueNames(account), key: key)
        try delete(Tables.userByCreation, account.user.creationKey)
        try deleteRows(of: key)
        try countPasswordHash(account.passwordHash, tenantID: key.tenant, by: -1)
        for sessionID in try reading.sessionIDs(of: key) { try removeSession(sessionID, of: key) }
        let newest = max(now, Timestamp(microseconds: account.user.tokensValidAfterMicros))
        // The row's time is `newest`, too, because `insertUnderChosenUID` goes by the times.
        try revokeTokens(of: key, before: newest + .microseconds(1), now: newest)
        try removeOobCodes(of: key)
        try removeSignInLinks(toEmailOf: account)
        try appendEvent(.userDeleted, tenantID: key.tenant, uid: key.uid, origin: origin, detail: detail, now: now)
    }

    /// The checks of `insert`, which come before any change. Returns the names that the account takes.
    @discardableResult
    func checkInsertable(_ account: Account) throws -> UniqueNames {
        let key = UserKey(account.user.tenantID, account.user.uid)
        try reading.requireLiveTenant(key.tenant)
        if try exists(Tables.users, key) { throw Failure.duplicateUID }
        let names = UniqueNames(account)
        try checkUnique(names, key: key)
        return names
    }

    func checkUnique(_ account: Account, key: UserKey) throws { try checkUnique(UniqueNames(account), key: key) }

    private func checkUnique(_ names: UniqueNames, key: UserKey) throws {
        let uid = key.uid.bytes
        if let email = names.email, let owner = try get(Tables.userByEmail, TenantTextKey(key.tenant, email)),
            owner != uid
        {
            throw Failure.emailExists
        }
        if let phone = names.phoneNumber, let owner = try get(Tables.userByPhone, TenantTextKey(key.tenant, phone)),
            owner != uid
        {
            throw Failure.phoneNumberExists
        }
        for identity in names.identities {
            if let owner = try reading.owner(of: identity, tenantID: key.tenant), owner != uid {
                throw Failure.federatedIDExists
            }
        }
    }

    private func putIndexes(_ names: UniqueNames, key: UserKey) throws {
        let uid = key.uid.bytes
        if let email = names.email { try put(Tables.userByEmail, TenantTextKey(key.tenant, email), uid) }
        if let phone = names.phoneNumber { try put(Tables.userByPhone, TenantTextKey(key.tenant, phone), uid) }
        for identity in names.identities { try put(Tables.userByProvider, identity.key(key.tenant), uid) }
    }

    private func deleteIndexes(_ names: UniqueNames, key: UserKey) throws {
        if let email = names.email { try delete(Tables.userByEmail, TenantTextKey(key.tenant, email)) }
        if let phone = names.phoneNumber { try delete(Tables.userByPhone, TenantTextKey(key.tenant, phone)) }
        for identity in names.identities { try delete(Tables.userByProvider, identity.key(key.tenant)) }
    }

    /// Counts the tenant's hashes by cost, so that a check for an unknown user can take as long as for a known one.
    private func countPasswordHash(_ hash: Text, tenantID: Text, by change: Int64) throws {
        guard !hash.isEmpty, let credential = try? PasswordCredential(stored: hash) else { return }
        let key = TenantTextKey(tenantID, credential.cost)
        let count = (try get(Tables.passwordHashKinds, key)?.count ?? 0) + change
        if count > 0 {
            try put(Tables.passwordHashKinds, key, StoredCount(count: count))
        } else {
            try delete(Tables.passwordHashKinds, key)
        }
    }
}

extension User {
    /// The user's place in the order of creation.
    var creationKey: UserTimeKey { UserTimeKey(tenantID, Timestamp(microseconds: createdAtMicros), uid) }
}

extension EventKind {
    /// Whether the change sets a password, which voids codes that were mailed for setting one. A new hash of the same
    /// password does not.
    fileprivate var setsPassword: Bool { [.passwordChanged, .passwordReset, .userImported].contains(self) }

    /// Whether the change sets a password outside of any session. The kind does not tell an admin's new password from
    /// one that is set in a session: see `administer`.
    fileprivate var setsPasswordFromOutside: Bool { [.passwordReset, .userImported].contains(self) }
}

/// The names that only one account of a tenant may have: the keys of the unique indexes.
struct UniqueNames {
    /// The canonical email.
    var email: Text?
    var phoneNumber: Text?
    var identities: [IdentityName]

    init(_ account: Account) {
        let user = account.user
        email = Email(stored: user.email)?.canonical
        phoneNumber = user.phoneNumber.isEmpty ? nil : user.phoneNumber
        identities = user.providers.filter(\.isFederated).map(IdentityName.init)
    }

    /// Whether both accounts have the same names. Compares the fields that the names are made of, and makes no names.
    static func areSame(_ first: Account, _ second: Account) -> Bool {
        first.user.email == second.user.email && first.user.phoneNumber == second.user.phoneNumber
            && first.user.providers.count == second.user.providers.count
            && zip(first.user.providers, second.user.providers).allSatisfy {
                $0.providerID == $1.providerID && $0.rawID == $1.rawID && $0.issuer == $1.issuer
            }
    }

    func subtracting(_ other: UniqueNames) -> UniqueNames {
        var left = self
        if email == other.email { left.email = nil }
        if phoneNumber == other.phoneNumber { left.phoneNumber = nil }
        left.identities.removeAll { other.identities.contains($0) }
        return left
    }
}
