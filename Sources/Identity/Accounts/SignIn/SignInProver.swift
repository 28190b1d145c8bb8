import Base
import Messages
import Rules
import Store

/// The evidence that a method proved an end user under its throttle. Only the `SignInProver` makes it.
struct FirstFactor: Sendable {
    let start: SessionStart
    /// The method of the proof. The transaction asks it whether the tenant still has it switched on.
    let method: any SignInMethod

    var methodSwitch: MethodSwitch { type(of: method).methodSwitch }

    fileprivate init(start: SessionStart, _ method: any SignInMethod) {
        self.start = start
        self.method = method
    }

    /// This proof, for a session that has the claims of the tenant's hooks as well.
    func adding(_ hooks: HookAnswer) -> FirstFactor {
        var start = start
        start.hookClaims = hooks.sessionClaims ?? []
        start.claims = HookAnswer.merged(start.hookClaims, into: start.claims)
        return FirstFactor(start: start, method)
    }
}

/// Proves an end user: the throttle, and the method's proof under it.
struct SignInProver: Sendable {
    let resources: Resources
    let tenants: TenantDirectory
    let guesses: GuessThrottle

    /// Proves the credential that was read, then runs `use`; all of it counts as one attempt of the throttle.
    func prove<Method: SignInMethod>(
        _ method: Method, _ credential: Method.Credential, _ attempt: SignInAttempt,
        _ use: (Method.Proof, FirstFactor) async throws -> SignedIn
    ) async throws -> (signedIn: SignedIn, proof: Method.Proof) {
        try await throttled(try method.throttle(credential, attempt), attempt) {
            try await proving(method, credential, attempt, use)
        }
    }

    /// Proves the credential and uses the proof; begins again when another write came first, and proves again when that
    /// write made the proof old. ACCOUNT_CHANGED after four attempts.
    private func proving<Method: SignInMethod>(
        _ method: Method, _ credential: Method.Credential, _ attempt: SignInAttempt,
        _ use: (Method.Proof, FirstFactor) async throws -> SignedIn
    ) async throws -> (signedIn: SignedIn, proof: Method.Proof) {
        var kept: Method.Proof?
        return try await startingOverWhenAccountMoved { () -> (signedIn: SignedIn, proof: Method.Proof) in
            let proof = if let kept { kept } else { try await method.prove(credential, attempt) }
            kept = proof
            do {
                return try await charged(method, credential, proof, attempt) {
                    (try await use(proof, FirstFactor(start: proof.start, method)), proof)
                }
            } catch let moved as AccountMoved {
                if moved.proofIsOld { kept = nil }
                throw moved
            }
        }
    }

    /// Runs an attempt under its throttle. A password attempt is charged before the check, and the charge is given back
    /// unless the password was wrong. TOO_MANY_ATTEMPTS_TRY_LATER, SERVER_OVERLOADED, QUOTA_EXCEEDED.
    private func throttled<Proof>(
        _ throttle: SignInThrottle, _ attempt: SignInAttempt,
        _ body: () async throws -> (signedIn: SignedIn, proof: Proof)
    ) async throws -> (signedIn: SignedIn, proof: Proof) {
        switch throttle {
        case .unguessable, .countedByTheCode: return try await body()
        case .provesMailbox:
            let done = try await body()
            guesses.forgetGuesses(
                at: done.signedIn.user, from: attempt.request, address: attempt.address, now: resources.clock.now())
            return done
        case .password(let email, let deviceToken):
            guard !attempt.settings.isSynthetic else { return try await body() }
            return try await guessed(email, deviceToken, attempt, body)
        case .tellsOfAccount(let email):
            return try await guesses.probing(
                email, of: attempt.request, address: attempt.address, isGivenBack: attempt.gaveEmail, body)
        case .anonymousSignUp:
            if !attempt.settings.isSynthetic, try !attempt.isRepeated() {
                try await tenants.tenant(attempt.tenantID).admitAnonymousSignUp(
                    address: attempt.address, settings: attempt.settings)
            }
            return try await body()
        }
    }

    /// Runs `body`, which uses the proof, and charges the attempt if its answer tells whether an email has an account.
    /// The charge comes before the email is looked for, so that a free and a taken email are refused alike. It comes
    /// after the proof, which alone shows whether the user owns the email: an owner is not charged.
    /// TOO_MANY_ATTEMPTS_TRY_LATER, SERVER_OVERLOADED.
    private func charged<Method: SignInMethod>(
        _ method: Method, _ credential: Method.Credential, _ proof: Method.Proof, _ attempt: SignInAttempt,
        _ body: () async throws -> (signedIn: SignedIn, proof: Method.Proof)
    ) async throws -> (signedIn: SignedIn, proof: Method.Proof) {
        guard let email = try method.unprovedEmail(in: proof, attempt) else { return try await body() }
        var isAdmitted = false
        do {
            return try await guesses.probing(
                of: attempt.request, address: attempt.address,
                isGivenBack: { result in
                    switch result {
                    case .success(let done): Email(stored: done.signedIn.user.email) == email
                    // The attempt begins again, and is charged again.
                    case .failure(is AccountMoved): true
                    case .failure: attempt.gaveEmail(result)
                    }
                },
                {
                    isAdmitted = true
                    return try await body()
                })
        } catch let failure as Failure where !isAdmitted {
            throw try method.refused(failure, after: proof, of: credential, attempt)
        }
    }

    private func guessed<Proof>(
        _ email: Email, _ deviceToken: Text, _ attempt: SignInAttempt,
        _ body: () async throws -> (signedIn: SignedIn, proof: Proof)
    ) async throws -> (signedIn: SignedIn, proof: Proof) {
        // This account only tells which devices and addresses are known; the account whose password is proved is read
        // later.
        let account = try resources.store.read { try $0.accountReadAlike(email: email, tenantID: attempt.tenantID) }
        let charge = try await guesses.admit(
            guesses.passwordGuess(
                email, account, of: attempt.request, address: attempt.address, deviceToken: deviceToken,
                now: resources.clock.now()))
        do {
            let done = try await body()
            guesses.succeeded(charge)
            return done
        } catch let failure as Failure where failure.saysWrongPassword {
            guesses.failed(charge)
            throw failure
        } catch {
            // This includes a call that was cancelled or whose deadline passed during the check of the password.
            if attempt.passwordCheck.mayBeGuess { guesses.failed(charge) } else { guesses.notTried(charge) }
            throw error
        }
    }
}

extension SignInAttempt {
    /// Whether the attempt gave the email to an account. A sign-up also makes its account where the user then waits for
    /// a second factor, and where a hook disables the user.
    fileprivate func gaveEmail<Done>(_ result: Result<Done, any Error>) -> Bool {
        switch result {
        case .success: true
        case .failure(is SignInPending): purpose == .signIn
        case .failure(let failure as Failure): purpose == .signIn && failure.is(.userDisabled)
        case .failure: false
        }
    }
}

extension Failure {
    fileprivate var saysWrongPassword: Bool { self.is(.invalidLoginCredentials, .emailNotFound, .invalidPassword) }
}
