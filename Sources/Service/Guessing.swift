import Base
import Identity
import Messages

// What handlers do about guessing: the end user's address and device as the request tells them, and what they cost.

extension Call {
    /// The end user's address, believed only from credentials that are marked for it; nil when it is not known.
    ///
    /// Called first in every handler that takes one. INVALID_END_USER_IP, also from others for what is longer than any
    /// address can be.
    func endUserAddress(_ claimed: Text) throws(Failure) -> EndUserAddress? {
        guard claimed.byteCount <= EndUserAddress.byteCountMax else { throw .invalidEndUserIP }
        guard caller?.trustsEndUserIP == true, !claimed.isEmpty else { return nil }
        guard let address = EndUserAddress(claimed) else { throw .invalidEndUserIP }
        return address
    }

    /// Charges an answer that tells whether an email has an account, so that a list cannot be tried out.
    ///
    /// With `email` the same question about the same email is slowed, too. Called whatever the answer will be, or once
    /// it is known to tell of an account. TOO_MANY_ATTEMPTS_TRY_LATER, SERVER_OVERLOADED.
    func chargeProbe(_ email: Email? = nil, address: EndUserAddress?) async throws {
        if settings.isSynthetic { return }
        let throttle = project.guesses
        var guess = guess(.probe, address: address)
        if let email { guess.account = throttle.keys.account(email, tenantID: tenantID) }
        throttle.failed(try await throttle.admit(guess))
    }

    /// A guess at the password of the account that has `email`, if any, from a device that shows `deviceToken`.
    func passwordGuess(email: Email, account: Account?, address: EndUserAddress?, deviceToken: Text) -> Guess {
        var guess = guess(.password, address: address)
        guess.account = project.guesses.keys.account(email, tenantID: tenantID)
        // Without an account a token is looked at all the same, and takes as long.
        let device = project.guesses.devices.device(
            in: deviceToken, tenantID: tenantID, uid: account?.user.uid ?? "there is nobody of that name",
            passwordUpdatedAt: account?.passwordUpdatedAt ?? .zero, now: now)
        if let device {
            guess.source = project.guesses.keys.device(device)
            guess.isKnown = true
        } else if guess.address != 0 {
            guess.isKnown = account?.knownAddresses.contains(guess.address) ?? false
        }
        return guess
    }

    /// A token by which the device is known at its next sign-in; the same device as in `token` when that was good.
    func deviceToken(for user: User, renewing token: Text = .empty) -> Text {
        let device = project.guesses.devices.device(
            in: token, tenantID: user.tenantID, uid: user.uid, passwordUpdatedAt: .zero, now: now)
        return project.guesses.devices.token(
            forDevice: device ?? project.resources.random.bytes(DeviceTokens.idByteCount), user: user, now: now)
    }

    /// Forgets the wrong passwords of a user who proved who they are by other means.
    func forgiveGuesses(of user: User) {
        guard let email = Email(stored: user.email) else { return }
        project.guesses.forgive(email, tenantID: user.tenantID)
    }

    private func guess(_ kind: Guess.Kind, address: EndUserAddress?) -> Guess {
        let keys = project.guesses.keys
        let hash = address.map { keys.address($0) } ?? 0
        return Guess(
            kind: kind, source: hash, address: hash, tenant: keys.tenant(tenantID),
            caller: keys.caller(caller?.id ?? .empty))
    }
}
