import Base
import Messages
import Rules
import Store

// Taking an email away from an account, because its mailbox is somebody else's.

extension ReadTransaction {
    /// The account that has `email`; nil if nobody has it, or the account of `key`.
    func otherHolder(of email: Text, than key: UserKey) throws -> Account? {
        guard let email = Email(stored: email), let uid = try uid(ofEmail: email, tenantID: key.tenant), uid != key.uid
        else { return nil }
        return try account(UserKey(key.tenant, uid))
    }
}

extension WriteTransaction {
    /// Frees `email` for `uid`, which has just proved it: an account that has it without proof loses it. An account
    /// that proved it keeps it.
    func releaseUnproved(_ email: Text, for uid: Text, tenantID: Text, origin: Origin, now: Timestamp) throws {
        let holder = try reading.otherHolder(of: email, than: UserKey(tenantID, uid))
        if let holder, !holder.user.emailVerified { try release(holder, origin: origin, now: now) }
    }

    /// Takes its unproved email from `account`, which goes back to the address it had proved last, if that is free.
    func release(_ account: Account, origin: Origin, now: Timestamp) throws {
        let former = try reading.waysBack(of: account.key, now: now).newestEmail
        let free = try former.flatMap { try isFree($0, for: account.key) ? $0 : nil }
        var changed = account
        changed.giveUpEmail(for: free, isVerified: true)
        changed.revokeTokens(.signedOut, now: now)
        try endSessions(of: account.key, .signedOut, now: now)
        try removeOobCodes(of: account.key) { OobCodes.isAbout($0, account.user.email) }
        try replace(account, by: changed, origin: origin, kind: .emailReleased, now: now)
    }

    /// Whether the account may have `email`: nobody else has it.
    func isFree(_ email: Text, for key: UserKey) throws -> Bool {
        guard let email = Email(stored: email) else { return false }
        let holder = try reading.uid(ofEmail: email, tenantID: key.tenant)
        return holder == nil || holder == key.uid
    }
}
