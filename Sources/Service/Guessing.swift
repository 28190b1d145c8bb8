import Base
import Identity
import Messages
import Rules

// The measures against guessing of handlers that sign nobody in. Sign-ins leave these to the `SignInPipeline`.

extension Call {
    /// The end user's address, as `EndUserRequest.address` believes it. Called first in every handler that takes an
    /// address.
    func endUserAddress(_ claimed: Text) throws(Failure) -> EndUserAddress? {
        try endUserRequest(endUserIP: claimed).address()
    }

    /// Charges an answer that tells whether an email has an account. TOO_MANY_ATTEMPTS_TRY_LATER, SERVER_OVERLOADED.
    func chargeProbe(address: EndUserAddress?) async throws {
        try await project.guesses.chargeProbe(of: endUserRequest(), address: address)
    }

    /// A token by which the device is known at its next sign-in.
    func deviceToken(for user: User) -> Text {
        project.guesses.devices.token(for: user, renewing: .empty, random: project.resources.random, now: now)
    }

    /// Forgets the wrong passwords of a user who proved who they are by other means.
    func forgiveGuesses(of user: User) { project.guesses.forgive(user) }
}
