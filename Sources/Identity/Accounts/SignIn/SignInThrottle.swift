public import Base
public import Rules

/// The way in which an attempt to sign in is counted and charged.
public enum SignInThrottle: Sendable {
    /// No charge: the credential is signed, or random, and nobody guesses it.
    case unguessable
    /// No charge. The proof also shows that the user owns the account whose password others guessed at: the wrong
    /// guesses are forgotten then.
    case provesMailbox
    /// No charge: the code that may be guessed counts its own wrong tries, in the store.
    case countedByTheCode
    /// A guess at the password of the account that has the email, from a device that shows `deviceToken`.
    case password(Email, deviceToken: Text)
    /// The answer tells whether the email has an account. The charge comes before anything looks for the email, and is
    /// given back when the attempt gives the email to an account.
    case tellsOfAccount(Email)
    /// A new account for which nothing has to be proved.
    case anonymousSignUp
}
