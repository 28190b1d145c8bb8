import Base
import Messages
import Rules
import Store

/// The steps of every sign-in, whatever method proves the end user:
///
/// 1. the end user's address
/// 2. for a signed-in user: the answer to the same request from before, which is given again; then the ID token
/// 3. the tenant's switch for the method; for a sign-up the toggle
/// 4. the form of the request
/// 5. a recent login, to link
/// 6. the throttle
/// 7. the proof; the charge, where the answer tells of an email that the proof does not show to be the end user's; the
///    answer to the same request from before, which is given again (also where it used up the code that is the proof);
///    then the tenant's hooks
/// 8. inside one transaction: the tenant's switches as they are by now; the account that the user signs in to, makes or
///    links to, the second factor, the session; where a second factor has to be shown first, the pending sign-in, which
///    `SecondFactorSignIns` finishes
/// 9. the tokens; where a toggle refused, its record
///
/// A method supplies the steps that are its own (`SignInMethod`). Tokens are issued for a `SessionGrant`. A session
/// begins with a `ProvedLogin`, which `SecondFactorStep` makes of a `FirstFactor`. Only the `SignInProver` makes that.
/// So a handler that leaves a step out does not compile.
public struct SignInPipeline: Sendable {
    let resources: Resources
    let users: UserDirectory
    let tokenCheck: TokenCheck
    let guesses: GuessThrottle
    /// Repeats the answers to earlier requests; changes by signed-in users that prove nothing use it, too.
    let repeatedChanges: RepeatedChanges
    /// Records what a toggle refused.
    let refusals: SelfServiceRefusals
    private let prover: SignInProver
    let pendingSignIns: PendingSignIns
    let hooks: BlockingHooks

    init(
        resources: Resources, users: UserDirectory, tenants: TenantDirectory, tokenCheck: TokenCheck,
        guesses: GuessThrottle, pendingSignIns: PendingSignIns, hooks: BlockingHooks
    ) {
        self.hooks = hooks
        self.pendingSignIns = pendingSignIns
        self.resources = resources
        self.users = users
        self.tokenCheck = tokenCheck
        self.guesses = guesses
        self.repeatedChanges = RepeatedChanges(resources: resources, users: users, tokenCheck: tokenCheck)
        self.refusals = SelfServiceRefusals(resources: resources, tenants: tenants)
        self.prover = SignInProver(resources: resources, tenants: tenants, guesses: guesses)
    }

    /// Signs in to the account that the method's proof names; with an ID token, links the method to its user.
    public func signInOrLink<Method: AccountChoosingMethod & LinkingMethod>(
        _ method: Method, _ request: EndUserRequest
    ) async throws -> SignInOutcome<Method.Proof> {
        request.idToken.isEmpty ? try await signIn(method, request) : try await link(method, request)
    }

    /// Makes an account; with an ID token, links the method to its user.
    public func signUpOrLink<Method: AccountCreatingMethod & LinkingMethod>(
        _ method: Method, _ request: EndUserRequest
    ) async throws -> SignInOutcome<Method.Proof> {
        request.idToken.isEmpty ? try await signUp(method, request) : try await link(method, request)
    }

    /// Signs in to the account that the method's proof names, and makes the account where there is none.
    public func signIn<Method: AccountChoosingMethod>(
        _ method: Method, _ request: EndUserRequest
    ) async throws -> SignInOutcome<Method.Proof> {
        let attempt = attempt(.signIn, request, try request.address())
        try method.checkOpen(request.settings)
        let reading = try method.read(attempt)
        let request = request.on(reading.device)
        do {
            let done = try await proving(method, reading, attempt) { proof, first in
                try await refusals.recording(of: method.refusedEndUser(proof), request) {
                    try await signIn(method, proof, first, request)
                }
            }
            return outcome(done.signedIn, done.proof, request)
        } catch let failure as Failure where failure.is(.invalidOOBCode, .invalidSessionInfo, .invalidTemporaryProof) {
            // The code or proof is gone. Perhaps this very request used it up, and its answer was lost.
            guard let again = try await answerAgain(request) else { throw failure }
            return outcome(again, nil, request)
        }
    }

    /// Makes an account. The toggle is checked before anything is looked up, and again in the transaction. The repeat
    /// of a sign-up that was done makes nobody, so the toggle does not refuse it.
    public func signUp<Method: AccountCreatingMethod>(
        _ method: Method, _ request: EndUserRequest
    ) async throws -> SignInOutcome<Method.Proof> {
        let attempt = attempt(.signIn, request, try request.address())
        try method.checkOpen(request.settings)
        // A key that came with another request changes nothing.
        if let toggle = SelfService.refusalOfSignUp(request.settings), (try? attempt.isRepeated()) != true {
            throw await refusals.failure(by: toggle, of: method.refusedEndUser(resources.limits), request)
        }
        let reading = try method.read(attempt)
        let request = request.on(reading.device)
        let done = try await proving(method, reading, attempt) { proof, first in
            let uid = resources.random.alphanumeric(28)
            let account = method.decide(
                proof, making: .new(tenantID: attempt.tenantID, uid: uid, now: attempt.startedAt),
                now: attempt.startedAt)
            let session = users.session(account.key)
            if let again = try await repeatedChanges.answer(toProved: request, by: session) { return again }
            let wanted = try await hooks.ask(
                event(isNewUser: true, account, first, request),
                tenantID: attempt.tenantID, source: request.source, deadline: request.deadline)
            return try await refusals.recording(of: method.refusedEndUser(resources.limits), request) {
                try await session.signUp(account, first.adding(wanted), hooks: wanted, request)
            }
        }
        return outcome(done.signedIn, done.proof, request)
    }

    /// Adds the method to the account of the signed-in user, whose session goes on with new tokens. An anonymous user
    /// becomes a known one, who signs in by this method from now on.
    public func link<Method: LinkingMethod>(
        _ method: Method, _ request: EndUserRequest
    ) async throws -> SignInOutcome<Method.Proof> {
        try await goOn(method, request, .link) { proof, current, moment, transaction in
            try method.decide(proof, linkingTo: current, moment, in: transaction)
        }
    }

    /// Proves the session's user by the method; the time of the session's login becomes now. USER_MISMATCH.
    public func reauthenticate<Method: ReauthenticatingMethod>(
        _ method: Method, _ request: EndUserRequest
    ) async throws -> SignInOutcome<Method.Proof> {
        try await goOn(method, request, .reauthenticate) { proof, current, moment, transaction in
            let account = try method.checkProof(proof, of: current, moment, in: transaction)
            return AccountEffect(account, kind: .reauthenticated, detail: proof.start.provider)
        }
    }
}

// MARK: - The steps

extension SignInPipeline {
    /// Proves the end user and uses the proof. SECOND_FACTOR_REQUIRED, SECOND_FACTOR_ENROLLMENT_REQUIRED.
    private func proving<Method: SignInMethod>(
        _ method: Method, _ reading: SignInReading<Method.Credential>, _ attempt: SignInAttempt,
        _ use: (Method.Proof, FirstFactor) async throws -> SignedIn
    ) async throws -> (signedIn: SignedIn, proof: Method.Proof) {
        do {
            return try await prover.prove(method, reading.credential, attempt, use)
        } catch let pending as SignInPending {
            throw pendingSignIns.failure(for: pending)
        }
    }

    /// The answer to the same sign-in from before, whose code cannot be proved again because that sign-in used it up;
    /// nil when it was not done before. IDEMPOTENCY_KEY_REUSED, ALREADY_DONE, and the failures of a sign-in that waits.
    private func answerAgain(_ request: EndUserRequest) async throws -> SignedIn? {
        // Any session of the tenant can answer.
        let session = users.session(UserKey(request.settings.tenantID, resources.random.alphanumeric(28)))
        do {
            return try await repeatedChanges.answer(toProved: request, by: session)
        } catch let pending as SignInPending {
            throw pendingSignIns.failure(for: pending)
        }
    }

    /// Links a method to a signed-in user or reauthenticates the user; the session goes on with new tokens.
    private func goOn<Method: SignInMethod>(
        _ method: Method, _ request: EndUserRequest, _ purpose: SignInAttempt.Purpose,
        _ decide:
            @escaping @Sendable (Method.Proof, Account, SignInMoment, borrowing WriteTransaction) throws
            -> AccountEffect
    ) async throws -> SignInOutcome<Method.Proof> {
        let address = try request.address()
        if let again = try await repeatedChanges.answer(to: request) { return outcome(again, nil, request) }
        let user = try tokenCheck.verifiedUser(request.idToken, settings: request.settings, store: resources.store)
        let attempt = attempt(purpose, request, address, user)
        try method.checkOpen(request.settings)
        let reading = try method.read(attempt)
        // A user who may not link is refused before anything is charged.
        if purpose == .link { try user.requireRecentLogin(now: resources.clock.now()) }
        let startsAnew = purpose == .reauthenticate || user.beganAnonymously
        let done = try await proving(method, reading, attempt) { proof, first in
            let moment = SignInMoment(
                key: user.account.key, settings: request.settings, origin: request.origin, now: resources.clock.now())
            return try await users.session(moment.key).change(
                by: user.token, proving: first, startsAnew: startsAnew, request
            ) { transaction, current in try decide(proof, current, moment, transaction) }
        }
        return outcome(done.signedIn, done.proof, request)
    }

    private func signIn<Method: AccountChoosingMethod>(
        _ method: Method, _ proof: Method.Proof, _ first: FirstFactor, _ request: EndUserRequest
    ) async throws -> SignedIn {
        let (settings, now) = (request.settings, resources.clock.now())
        let seen = try resources.store.read {
            try method.choose(proof, known: nil, settings: settings, now: now, in: $0)
        }
        let key = UserKey(settings.tenantID, seen.uid ?? resources.random.alphanumeric(28))
        let moment = SignInMoment(key: key, settings: settings, origin: request.origin, now: now)
        let session = users.session(key)
        if let again = try await repeatedChanges.answer(toProved: request, by: session) { return again }
        let known = try resources.store.read { try $0.account(key) }
        let account = try method.effect(proof, seen, on: known, moment).account
        let wanted = try await askHooks(about: account, isNewUser: known == nil, first, request)
        return try await session.signIn(
            first.adding(wanted), hooks: wanted, request,
            confirming: { transaction, current in
                let chosen = try method.choose(
                    proof, known: current, settings: settings, now: now, in: transaction.reading)
                guard chosen == seen, wanted.counts(for: current?.user, asked: known?.user) else {
                    throw AccountMoved()
                }
            }
        ) { transaction, current in try method.decide(proof, seen, on: current, moment, in: transaction) }
    }

    /// Asks the tenant's hooks, unless the sign-in is going to be refused anyway. `account`: as the sign-in leaves it.
    private func askHooks(
        about account: Account, isNewUser: Bool, _ first: FirstFactor, _ request: EndUserRequest
    ) async throws -> HookAnswer {
        let isRefused = isNewUser ? SelfService.refusalOfSignUp(request.settings) != nil : account.user.disabled
        guard !isRefused else { return HookAnswer() }
        return try await hooks.ask(
            event(isNewUser: isNewUser, account, first, request), tenantID: request.settings.tenantID,
            source: request.source, deadline: request.deadline)
    }

    private func event(
        isNewUser: Bool, _ account: Account, _ first: FirstFactor, _ request: EndUserRequest
    ) -> BlockingHooks.Event {
        let device = request.origin.device
        return BlockingHooks.Event(
            isNewUser: isNewUser, account: account, signInProvider: first.start.provider, deviceName: device.name,
            endUserIP: device.address?.text ?? .empty, requestID: request.origin.requestID)
    }

    private func attempt(
        _ purpose: SignInAttempt.Purpose, _ request: EndUserRequest, _ address: EndUserAddress?,
        _ user: VerifiedUser? = nil
    ) -> SignInAttempt {
        SignInAttempt(
            request: request, address: address, purpose: purpose, user: user, startedAt: resources.clock.now(),
            resources: resources, keys: guesses.keys)
    }

    private func outcome<Proof>(
        _ signedIn: SignedIn, _ proof: Proof?, _ request: EndUserRequest
    ) -> SignInOutcome<Proof> {
        SignInOutcome(
            user: signedIn.user, tokens: signedIn.tokens, isNewUser: signedIn.isNewUser,
            deviceToken: guesses.devices.token(
                for: signedIn, renewing: request.deviceToken, random: resources.random, now: resources.clock.now()),
            proof: proof)
    }
}
