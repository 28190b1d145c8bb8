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

    /// Charges a question whether an email has an account. Called before anything looks for the email.
    /// TOO_MANY_ATTEMPTS_TRY_LATER, SERVER_OVERLOADED.
    func chargeProbe(address: EndUserAddress?) async throws {
        try await project.guesses.chargeProbe(of: endUserRequest(), address: address)
    }

    /// Charges the question whether an email has an account, then runs `body`, which changes an email. With `givesBack`
    /// the charge is given back if `body` succeeds.
    func probing<Answer>(
        address: EndUserAddress?, givesBack: Bool, _ body: () async throws -> Answer
    ) async throws -> Answer {
        try await project.guesses.probing(
            of: endUserRequest(), address: address, isGivenBack: { givesBack && (try? $0.get()) != nil }, body)
    }

    /// A token by which the device is known at its next sign-in.
    func deviceToken(for signedIn: SignedIn) -> Text {
        project.guesses.devices.token(for: signedIn, renewing: .empty, random: project.resources.random, now: now)
    }

    /// A device token after a proof that began no session.
    func deviceToken(for user: User) -> Text {
        project.guesses.devices.token(
            for: DeviceTokens.Device(
                id: project.resources.random.bytes(DeviceTokens.idByteCount), hasShownFactor: false),
            user: user, now: now)
    }

    /// Forgets the wrong passwords of a user who has a new password.
    func forgiveGuesses(of user: User) { project.guesses.forgive(user) }
}
