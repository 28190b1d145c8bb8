import Base
import Messages
import Rules
import Store

extension WriteTransaction {
    /// The account as it is, the account as `change` makes it, and the other effects of that; nothing is written.
    func administered(
        _ key: UserKey, _ change: AdminChange, now: Timestamp
    ) throws -> (current: Account, changed: Account, effect: AdminChange.Effect) {
        guard let current = try reading.account(key) else { throw Failure.userNotFound }
        var changed = current
        var change = change
        change.linkedProviders = try change.linkedProviders.map { try reading.bound($0, tenantID: key.tenant) }
        let effect = try change.apply(to: &changed, now: now)
        return (current, changed, effect)
    }

    /// Applies `change`. A new password, a new email or disabling ends every session.
    func administer(_ key: UserKey, _ change: AdminChange, origin: Origin, now: Timestamp) throws -> User {
        var (current, changed, effect) = try administered(key, change, now: now)
        if let end = effect.end { changed.revokeTokens(end, now: now) }
        try replace(current, by: changed, origin: origin, kind: effect.kind, detail: effect.detail, now: now)
        for other in effect.others {
            try appendEvent(
                other.kind, tenantID: key.tenant, uid: key.uid, origin: origin, detail: other.detail, now: now)
        }
        if let end = effect.end { try endSessions(of: key, end, now: now) }
        if effect.voidsCodes { try removeOobCodes(of: key) }
        if effect.end == .passwordChanged { try removeSignInLinks(toEmailOf: changed) }
        return changed.user
    }
}
