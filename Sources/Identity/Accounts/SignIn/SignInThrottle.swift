public import Base
public import Rules

/// What an attempt to sign in costs whoever makes it.
public enum SignInThrottle: Sendable {
    /// Nothing: the credential is signed, or random, and nobody guesses it.
    case unguessable
    /// Nothing either, and the proof shows that the user is the one whose password others guessed at: the wrong ones
    /// are forgotten then.
    case provesMailbox
    /// Nothing: what may be guessed at counts its own wrong tries, in the store.
    case countedByTheCode
    /// A guess at the password of the account that has the email, from a device that shows `deviceToken`.
    case password(Email, deviceToken: Text)
    /// The answer tells that the email has an account; once it is paid for it is `answer`, or what comes of going on.
    case tellsOfAccount(Email, answer: Failure?)
    /// An account for which nothing has to be proved.
    case anonymousSignUp
}
