import Base
import Messages

/// That a method proved an end user. Only the `SignInPipeline` makes it, after the steps of every sign-in.
///
/// `UserSession` begins no session without it, and none is begun before `SecondFactor.decide` was asked.
enum SecondFactor {
    /// What becomes of a sign-in whose first factor is proved.
    enum Decision {
        case notNeeded(ProvedLogin)
    }

    /// Asked for every sign-in, over the account as the sign-in leaves it, in the transaction that begins the session.
    /// No account has a second factor yet.
    static func decide(for account: Account, after first: FirstFactor, settings: TenantSettings) -> Decision {
        .notNeeded(ProvedLogin(start: first.start))
    }
}

/// A login that needs no further proof: what a session begins with, or moves its login to.
struct ProvedLogin: Sendable {
    let start: SessionStart

    fileprivate init(start: SessionStart) { self.start = start }
}
