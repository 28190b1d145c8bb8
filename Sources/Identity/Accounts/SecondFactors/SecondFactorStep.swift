import Base
import Messages
import Rules

/// The decision whether a sign-in needs a second factor. Every sign-in and reauthentication asks it, because a session
/// begins with a `ProvedLogin`, and only this file makes one.
///
/// A new case of `Decision` does not compile before `UserSession` handles it.
enum SecondFactorStep {
    /// The next step of a sign-in whose first factor is proved.
    enum Decision {
        case notNeeded(ProvedLogin)
        /// The sign-in waits for one of the user's factors, or until the user has enrolled a first one.
        case waits(PendingSignInKind)
    }

    /// Decides over the account as the sign-in would leave it.
    ///
    /// `settings`: in the transaction that begins a session, its `currentSettings`. Since the call was admitted, second
    /// factors may have become mandatory, and the sessions without one may have been ended.
    static func decide(for account: Account, after first: FirstFactor, settings: TenantSettings) -> Decision {
        switch SecondFactorRules.need(of: account.user, settings: settings) {
        case .nothing: .notNeeded(ProvedLogin(start: first.start, factor: nil))
        case .factor: .waits(.factor)
        case .enrollment: .waits(.enrollment)
        }
    }
}

/// A sign-up may no longer begin a session with its first factor alone.
struct SecondFactorWanted: Error {}

/// A login that needs no further proof. A session begins with it, or takes it as its new login.
struct ProvedLogin: Sendable {
    let start: SessionStart
    /// Nil where none was asked for.
    let factor: ProvedFactor?

    fileprivate init(start: SessionStart, factor: ProvedFactor?) {
        self.start = start
        self.factor = factor
    }

    /// The login of a pending sign-in whose user has shown a second factor, or enrolled one.
    init(finishing pending: StoredPendingSignIn, with factor: ProvedFactor) {
        var start = SessionStart(pending.signInProvider, claims: pending.claimsJSON)
        start.hookClaims = pending.hookClaimsJSON
        self.init(start: start, factor: factor)
    }
}
