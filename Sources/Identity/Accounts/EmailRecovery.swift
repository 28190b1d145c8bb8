import Base
import Messages
import Rules
import Store

/// The way back to an email that is being replaced: a code and its mail, put in the transaction that replaces it.
struct EmailRecovery: Sendable {
    let resources: Resources
    let tenants: TenantDirectory
    let oobDelivery: OobDelivery

    /// The way back to the email that `user` has, if that was proved; nil otherwise. An address that nobody proved may
    /// have been a stranger's all the time, and the code would give the account to the stranger.
    /// TOO_MANY_ATTEMPTS_TRY_LATER when the mailbox was told of many changes lately, or the account changed its email
    /// too often.
    func prepare(
        of user: User?, newEmail: Text, settings: TenantSettings, now: Timestamp
    ) async throws -> PreparedOob? {
        guard let user, user.emailVerified, let old = Email(stored: user.email), old != Email(stored: newEmail) else {
            return nil
        }
        let key = UserKey(settings.tenantID, user.uid)
        do {
            try resources.store.read { try $0.waysBack(of: key, now: now).checkRoom(resources.limits, now: now) }
        } catch {
            oobDelivery.recoveriesRefused.add()
            throw error
        }
        if !settings.isSynthetic {
            try await tenants.tenant(settings.tenantID).admitNotice(to: old, settings: settings)
        }
        var order = OobOrder(.recoverEmail, email: user.email)
        order.uid = user.uid
        order.newEmail = newEmail
        return try oobDelivery.prepare(order, settings: settings, now: now)
    }
}

extension WriteTransaction {
    /// Puts the way back to the proved email of `current`, which `changed` no longer has. ACCOUNT_CHANGED when
    /// `recovery` goes to another mailbox, or is nil, because the account changed meanwhile.
    func putWayBack(
        _ recovery: PreparedOob?, from changed: Account, to current: Account, limits: Limits, now: Timestamp
    ) throws {
        guard current.user.emailVerified, changed.hasOtherEmail(than: current) else { return }
        guard let recovery, Email(stored: recovery.stored.email) == Email(stored: current.user.email) else {
            throw Failure(.accountChanged, "The account changed meanwhile; try again.")
        }
        let waysBack = try reading.waysBack(of: current.key, now: now)
        try waysBack.checkRoom(limits, now: now)
        try recovery.asWayBack(to: current, place: waysBack.nextPlace).put(in: self)
    }
}
