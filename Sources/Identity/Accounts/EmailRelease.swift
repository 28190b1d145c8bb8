import Base
import Messages
import Rules
import Store

// Taking an email away from an account, because its mailbox is somebody else's.

extension WriteTransaction {
    /// Frees `email` for `uid`, which has just proved it: an account that has it without proof loses it. An account
    /// that proved it keeps it.
    func releaseUnproved(_ email: Text, for uid: Text, tenantID: Text, origin: Origin, now: Timestamp) throws {
        guard let email = Email(stored: email), let holder = try reading.uid(ofEmail: email, tenantID: tenantID),
            holder != uid, let account = try reading.account(UserKey(tenantID, holder)), !account.user.emailVerified
        else { return }
        try release(account, origin: origin, now: now)
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
