public import Base
public import Messages
public import Rules

// The guesses of end users: how a request describes a guess, and how the guess is charged.

extension GuessThrottle {
    /// Charges an answer that tells whether an email has an account, so that nobody can try out a list.
    ///
    /// With `email`, repeated questions about the same email are slowed, too. Called either for every answer, or once
    /// the answer is known to tell of an account. TOO_MANY_ATTEMPTS_TRY_LATER, SERVER_OVERLOADED.
    public func chargeProbe(
        _ email: Email? = nil, of request: EndUserRequest, address: EndUserAddress?
    ) async throws {
        if request.settings.isSynthetic { return }
        var guess = guess(.probe, of: request, address: address)
        if let email { guess.account = keys.account(email, tenantID: request.settings.tenantID) }
        failed(try await admit(guess))
    }

    /// A guess at the password of the account that has `email`, if any, from a device that shows `deviceToken`.
    func passwordGuess(
        _ email: Email, _ account: Account?, of request: EndUserRequest, address: EndUserAddress?, deviceToken: Text,
        now: Timestamp
    ) -> Guess {
        let tenantID = request.settings.tenantID
        var guess = guess(.password, of: request, address: address)
        guess.account = keys.account(email, tenantID: tenantID)
        // Without an account the token is checked all the same, so that this takes as long.
        let device = devices.device(
            in: deviceToken, tenantID: tenantID, uid: account?.user.uid ?? "there is nobody of that name",
            passwordUpdatedAt: account?.passwordUpdatedAt ?? .zero, now: now)
        if let device {
            guess.source = keys.device(device)
            guess.isKnown = true
        } else if guess.address != 0 {
            guess.isKnown = account?.knownAddresses.contains(guess.address) ?? false
        }
        return guess
    }

    /// Forgets the wrong passwords of a user who proved their identity by other means.
    public func forgive(_ user: User) {
        guard let email = Email(stored: user.email) else { return }
        forgive(email, tenantID: user.tenantID)
    }

    private func guess(_ kind: Guess.Kind, of request: EndUserRequest, address: EndUserAddress?) -> Guess {
        let hash = address.map { keys.address($0) } ?? 0
        return Guess(
            kind: kind, source: hash, address: hash, tenant: keys.tenant(request.settings.tenantID),
            caller: keys.caller(request.caller?.id ?? .empty))
    }
}

extension DeviceTokens {
    /// A token by which the device is known at its next sign-in; the device is that of `token` if that token was good.
    public func token(for user: User, renewing token: Text, random: RandomSource, now: Timestamp) -> Text {
        let device = device(in: token, tenantID: user.tenantID, uid: user.uid, passwordUpdatedAt: .zero, now: now)
        return self.token(forDevice: device ?? random.bytes(Self.idByteCount), user: user, now: now)
    }
}
