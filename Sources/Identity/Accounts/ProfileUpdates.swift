import Base
public import Messages
public import Rules
import Store
import Tokens

/// The changes that signed-in users make to their own accounts.
public struct ProfileUpdates: Sendable {
    let resources: Resources
    let users: UserDirectory
    let mailer: Mailer
    let recovery: EmailRecovery

    /// The result of a change.
    public enum Changed: Sendable {
        /// The user alone: nobody was signed out, or the change was only checked.
        case profile(User)
        /// The session that made the change goes on with new tokens; all others ended.
        case session(SignedIn)
    }

    /// Applies a user's change of its own account. A new password or email ends every other session and all older
    /// tokens, and returns new tokens; the old email is sent a way to take the change back. TOO_MANY_ATTEMPTS_TRY_LATER
    /// when the old email was sent many lately.
    public func apply(
        _ change: ProfileChange, of verified: VerifiedUser, validateOnly: Bool, _ request: EndUserRequest
    ) async throws -> Changed {
        let user = verified.account.user
        let session = users.session(tenantID: user.tenantID, uid: user.uid)
        guard let end = change.endsOtherSessions, !validateOnly else {
            return .profile(
                try await session.update(change, by: verified, origin: request.origin, validateOnly: validateOnly))
        }
        let now = resources.clock.now()
        var wayBack: PreparedOob?
        if let newEmail = change.newEmail {
            wayBack = try await recovery.prepare(
                of: user, newEmail: newEmail.address, settings: request.settings, now: now)
        }
        let limits = resources.limits
        let signedIn = try await session.change(by: verified.token, request) { [wayBack] transaction, current in
            var changed = current
            try change.apply(to: &changed, now: now)
            if change.newEmail != nil { try transaction.checkUnique(changed, key: current.key) }
            try transaction.putWayBack(wayBack, from: changed, to: current, limits: limits, now: now)
            let kind: EventKind = change.newPasswordHash != nil ? .passwordChanged : .emailChanged
            return AccountEffect(changed, kind: kind, detail: change.fieldNames, endsSessions: end)
        }
        if wayBack != nil { mailer.wakeNow() }
        return .session(signedIn)
    }
}
