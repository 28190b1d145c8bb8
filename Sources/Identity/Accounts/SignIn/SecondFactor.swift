import Base
import Messages
import Rules

/// The decision whether a sign-in needs a second factor. Every sign-in and reauthentication asks it, because a session
/// begins with a `ProvedLogin`, and only `decide` makes one.
///
/// A new case of `Decision` does not compile before `UserSession` says what becomes of such a sign-in.
enum SecondFactor {
    /// What becomes of a sign-in whose first factor is proved.
    enum Decision {
        case notNeeded(ProvedLogin)
    }

    /// Decides over the account as the sign-in leaves it; called in the transaction that begins the session, or before
    /// the one that makes the account. No account has a second factor yet.
    static func decide(for account: Account, after first: FirstFactor, settings: TenantSettings) -> Decision {
        .notNeeded(ProvedLogin(start: first.start))
    }
}

/// A login that needs no further proof: what a session begins with, or moves its login to.
struct ProvedLogin: Sendable {
    let start: SessionStart

    fileprivate init(start: SessionStart) { self.start = start }
}
