public import Base
public import Messages
public import Rules

// The guesses of end users: how a request describes a guess, and how the guess is charged.

extension GuessThrottle {
    /// Charges a question whether an email has an account, so that nobody can try out a list. Called before anything
    /// looks for the email. TOO_MANY_ATTEMPTS_TRY_LATER, SERVER_OVERLOADED.
    public func chargeProbe(of request: EndUserRequest, address: EndUserAddress?) async throws {
        try await probing(of: request, address: address, isGivenBack: { _ in false }, {})
    }

    /// Charges the question whether an email has an account, and then runs `body`, which looks for the email. The
    /// charge is given back where `isGivenBack` says so: whoever takes an email asks no question.
    ///
    /// With `email`, repeated questions about the same email are slowed, too. TOO_MANY_ATTEMPTS_TRY_LATER,
    /// SERVER_OVERLOADED.
    public func probing<Answer>(
        _ email: Email? = nil, of request: EndUserRequest, address: EndUserAddress?,
        isGivenBack: (Result<Answer, any Error>) -> Bool, _ body: () async throws -> Answer
    ) async throws -> Answer {
        if request.settings.isSynthetic { return try await body() }
        var guess = guess(.probe, of: request, address: address)
        if let email { guess.account = keys.account(email, tenantID: request.settings.tenantID) }
        let charge = try await admit(guess)
        let result: Result<Answer, any Error>
        do { result = .success(try await body()) } catch { result = .failure(error) }
        if isGivenBack(result) { notTried(charge) } else { failed(charge) }
        return try result.get()
    }

    /// Charges the addresses that `account` knows for the question that its sign-up was: its user has deleted it, so
    /// that the email is free again. If the account knows no address, the tenant and the caller are charged alone, as
    /// for any question without an address.
    public func chargeProbe(ofDeleted account: Account, _ request: EndUserRequest) {
        guard !request.settings.isSynthetic, !account.user.email.isEmpty else { return }
        let known = account.knownAddresses.all
        for address in known.isEmpty ? [0] : known {
            var guess = guess(.probe, of: request, address: nil)
            guess.address = address
            charge(guess)
        }
    }

    /// A guess at the password of the account that has `email`, if any, from a device that shows `deviceToken`.
    func passwordGuess(
        _ email: Email, _ account: Account?, of request: EndUserRequest, address: EndUserAddress?, deviceToken: Text,
        now: Timestamp
    ) -> Guess {
        let tenantID = request.settings.tenantID
        var guess = guess(.password, of: request, address: address)
        guess.account = keys.account(email, tenantID: tenantID)
        if let device = device(of: account, deviceToken, tenantID: tenantID, now: now) {
            guess.source = keys.device(device.id)
            guess.isKnown = true
        } else if guess.address != 0 {
            guess.isKnown = account?.knownAddresses.contains(guess.address) ?? false
        }
        return guess
    }

    /// How `account`, which has a phone number, knows who asks for a code to it.
    public func knownAsker(
        _ account: Account?, _ request: EndUserRequest, address: EndUserAddress?, now: Timestamp
    ) -> KnownAsker? {
        let device = device(of: account, request.deviceToken, tenantID: request.settings.tenantID, now: now)
        return knownAsker(of: account, by: device, at: address)
    }

    /// `device`: one that the account knows.
    func knownAsker(of account: Account?, by device: DeviceTokens.Device?, at address: EndUserAddress?) -> KnownAsker? {
        if device != nil { return .device }
        guard let account, let address, account.knownAddresses.contains(keys.address(address)) else { return nil }
        return .address
    }

    /// The device of a token that was given for `account` since its password was set. Without an account the token is
    /// checked all the same, so that this takes as long.
    private func device(of account: Account?, _ token: Text, tenantID: Text, now: Timestamp) -> DeviceTokens.Device? {
        devices.device(
            in: token, tenantID: tenantID, uid: account?.user.uid ?? "there is nobody of that name",
            notBefore: account.map { max($0.passwordUpdatedAt, $0.importedAt) } ?? .zero, now: now)
    }

    /// Forgets the wrong passwords that came from the device or address of `request`, from which `user` has just signed
    /// in by other means than the password. Other devices and addresses wait on: the end of their waiting would tell
    /// whoever guesses when the user signs in.
    func forgetGuesses(at user: User, from request: EndUserRequest, address: EndUserAddress?, now: Timestamp) {
        guard !request.settings.isSynthetic, let email = Email(stored: user.email) else { return }
        var guess = guess(.password, of: request, address: address)
        guess.account = keys.account(email, tenantID: user.tenantID)
        let device = devices.device(
            in: request.deviceToken, tenantID: user.tenantID, uid: user.uid, notBefore: .zero, now: now)
        if let device { guess.source = keys.device(device.id) }
        forget(guess)
    }

    /// Forgets the wrong passwords of a user who has a new password.
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
    ///
    /// It is of the time of the sign-in, not of this answer: a new password may have been set meanwhile, for which the
    /// token must not count.
    public func token(for signedIn: SignedIn, renewing token: Text, random: RandomSource, now: Timestamp) -> Text {
        let user = signedIn.user
        let known = device(in: token, tenantID: user.tenantID, uid: user.uid, notBefore: .zero, now: now)
        let device = Device(id: known?.id ?? random.bytes(Self.idByteCount), hasShownFactor: signedIn.hasShownFactor)
        return self.token(for: device, user: user, now: signedIn.madeAt)
    }
}
