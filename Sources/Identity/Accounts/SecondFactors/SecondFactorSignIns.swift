public import Base
import Crypto
import Messages
import Rules
import Store

/// Finishes the sign-ins that wait for a second factor.
///
/// Each code is counted and judged in one write of its user, so that no more than five of the guesses that come at the
/// same time are judged. A right code begins the session, or makes its login recent, in the same write.
public struct SecondFactorSignIns: Sendable {
    let resources: Resources
    let users: UserDirectory
    let guesses: GuessThrottle
    let codes: VerificationCodes
    let pendingSignIns: PendingSignIns
    let secrets: FactorSecrets

    public var counts: SecondFactorCounts { pendingSignIns.counts }

    /// Sends the code of a phone factor. For the refusals see Accounts.StartMfaSignIn.
    public func start(
        _ credential: Secret, factorID: Text, locale: Text, _ request: EndUserRequest
    ) async throws -> SentVerificationCode {
        let address = try request.address()
        let id = try pendingID(in: credential, request.settings)
        guard !factorID.isEmpty else { throw Failure.missingFactorID }
        try Values.checkLocale(locale, limits: resources.limits)
        let (pending, account) = try pending(id, request.settings)
        let factor = try SecondFactorRules.offered(to: account.user, after: pending.signInProvider).factor(factorID)
        guard factor.kind == .phone, let number = PhoneNumber(factor.phoneNumber) else { throw Failure.factorNotFound }
        var order = VerificationOrder(to: number, for: .secondFactorSignIn(pendingID: id, uid: account.user.uid))
        order.locale = locale
        order.address = address
        order.knownAsker = guesses.knownAsker(ofFactor: account, request, address: address, now: resources.clock.now())
        return try await codes.send(order, request)
    }

    /// Finishes a sign-in. For the refusals see Accounts.FinalizeMfaSignIn.
    public func finish(
        _ credential: Secret, _ shown: ShownFactor?, _ request: EndUserRequest
    ) async throws -> (signedIn: SignedIn, deviceToken: Text) {
        let address = try request.address()
        guard !credential.isEmpty else { throw Failure.missingPendingCredential }
        guard let shown else { throw Failure.invalid(.missingCredential, field: "proof", "is required") }
        try shown.checkForm()
        let id = try pendingID(in: credential, request.settings)
        let signedIn = try await answeringAgain({ try await users.answerAgain(to: request, resources) }) {
            let (_, account) = try pending(id, request.settings)
            do {
                let signedIn = try await finish(id, shown, account, request, address)
                counts.note(shown, nil)
                return signedIn
            } catch let failure as Failure {
                counts.note(shown, failure)
                throw failure
            }
        }
        let now = resources.clock.now()
        guesses.forgetGuesses(at: signedIn.user, from: request, address: address, now: now)
        let token = guesses.devices.token(
            for: signedIn, renewing: request.deviceToken, random: resources.random, now: now)
        return (signedIn, token)
    }

    private func finish(
        _ id: [UInt8], _ shown: ShownFactor, _ account: Account, _ request: EndUserRequest, _ address: EndUserAddress?
    ) async throws -> SignedIn {
        let session = users.session(account.key)
        let source = guesses.knownSource(of: account, request, address: address, now: resources.clock.now())
        let budget = FactorGuesses(of: account.key, source: source, isSynthetic: request.settings.isSynthetic)
        guard case .phone(let factorID, let code, let sessionInfo) = shown else {
            guard let claim = FactorClaim(shown) else { throw Failure.invalidVerificationCode }
            return try await session.finishSignIn(id, claim, budget, secrets, request)
        }
        // The SMS code counts its own wrong tries, in a write of its own. Before that the pending sign-in counts this
        // try.
        try await session.countTry(ofSignIn: id, request)
        let number = try await codes.judge(
            sessionInfo, code, for: [.secondFactorSignIn(pendingID: id, uid: account.user.uid)], request)
        return try await session.finishSignIn(
            id, FactorClaim(number, factorID: factorID), budget, secrets, request)
    }

    private func pendingID(in credential: Secret, _ settings: TenantSettings) throws(Failure) -> [UInt8] {
        guard !credential.isEmpty else { throw .missingPendingCredential }
        guard let id = credential.withBytes({ pendingSignIns.id(in: $0, tenantID: settings.tenantID) }) else {
            throw .invalidPendingSignIn
        }
        return id
    }

    /// A pending sign-in and its account, with the factors that can finish it.
    private func pending(
        _ id: [UInt8], _ settings: TenantSettings
    ) throws -> (pending: StoredPendingSignIn, account: Account) {
        let now = resources.clock.now()
        return try resources.store.read {
            var (pending, account) = try $0.pendingSignIn(id, .factor, tenantID: settings.tenantID, now: now)
            account.takeBack(after: try $0.emailProof(keptBy: pending, account, now: now))
            return (pending, account)
        }
    }
}

extension UserDirectory {
    /// The answer to the same request when it was done before and used its pending sign-in up. ALREADY_DONE,
    /// IDEMPOTENCY_KEY_REUSED.
    func answerAgain(to request: EndUserRequest, _ resources: Resources) async throws -> SignedIn? {
        guard let idempotency = request.origin.idempotency else { return nil }
        let found = try resources.store.read { transaction -> (RepeatedSession, Text)? in
            guard let record = try transaction.earlier(idempotency) else { return nil }
            guard let session = try transaction.get(Tables.sessions, SessionKey(record.sessionID)) else {
                throw Failure.alreadyDone
            }
            return (RepeatedSession(record), session.uid)
        }
        guard let (repeated, uid) = found else { return nil }
        return try await session(tenantID: request.settings.tenantID, uid: uid)
            .signedInAgain(repeated, request)
    }
}

extension UserSession {
    /// Counts a try of a pending sign-in whose code is judged elsewhere.
    fileprivate func countTry(ofSignIn id: [UInt8], _ request: EndUserRequest) async throws {
        let (now, tenantID) = (resources.clock.now(), tenantID)
        try await write(for: .session) { transaction in
            var (pending, _) = try transaction.reading.pendingSignIn(id, .factor, tenantID: tenantID, now: now)
            try transaction.countTry(&pending, id: id, tenantID: tenantID)
        }
    }

    /// Judges the claim for a pending sign-in, and finishes the sign-in when the claim is right.
    fileprivate func finishSignIn(
        _ id: [UInt8], _ claim: FactorClaim, _ budget: FactorGuesses, _ secrets: FactorSecrets,
        _ request: EndUserRequest
    ) async throws -> SignedIn {
        let (now, tenantID, origin) = (resources.clock.now(), tenantID, request.origin)
        let newID = SessionID.make(at: now, random: resources.random)
        let sessionsMax = resources.limits.sessionsPerUserMax
        return try await answeringRepeat(of: request) {
            let issue: SignInIssue<FinishedSignIn> = try await write(for: .session, mayBePutOff: true) { transaction in
                var (pending, current) = try transaction.reading.pendingSignIn(
                    id, .factor, tenantID: tenantID, now: now)
                var account = current
                account.takeBack(after: try transaction.reading.emailProof(keptBy: pending, current, now: now))
                if claim.countsTry {
                    try transaction.requireRoom(budget, now: now)
                    _ = try claim.factor(of: account)
                    try transaction.countTry(&pending, id: id, tenantID: tenantID)
                }
                let sessionID = pending.sessionID.isEmpty ? newID : pending.sessionID
                return try transaction.issuingUnlessRepeated(session: sessionID, origin, now: now) {
                    guard let proved = try transaction.judge(claim, of: &account, secrets: secrets, now: now) else {
                        try transaction.noteWrong(pending, id: id, budget, request, now: now)
                        return .refused(claim.refusal)
                    }
                    try transaction.removePendingSignIn(id, pending, tenantID: tenantID)
                    return .tokens(
                        try transaction.finish(
                            pending, id: sessionID, with: proved, account, current, request, sessionsMax: sessionsMax,
                            now: now))
                }
            }
            return try await signedIn(try issue.value(), request, now: now)
        }
    }

    /// The tokens of a sign-in that is finished.
    func signedIn(_ finished: FinishedSignIn, _ request: EndUserRequest, now: Timestamp) async throws -> SignedIn {
        let tokens = try await issuer.tokens(
            for: finished.grant, settings: request.settings, now: now, deadline: request.deadline)
        return SignedIn(finished.grant, tokens: tokens, isNewUser: finished.isNewUser)
    }
}

/// A sign-in that waited for a second factor, and is finished.
struct FinishedSignIn: Sendable {
    let grant: SessionGrant
    let isNewUser: Bool
}

extension WriteTransaction {
    /// Begins the session of a pending sign-in, or makes the login of its session recent, and changes the account as
    /// the sign-in would have.
    ///
    /// `account` is `current` after the factor was used up, without the factors that the sign-in removes.
    func finish(
        _ pending: StoredPendingSignIn, id sessionID: [UInt8], with factor: ProvedFactor, _ account: Account,
        _ current: Account, _ request: EndUserRequest, endingOthers: SessionEnd? = nil, sessionsMax: Int,
        now: Timestamp
    ) throws -> FinishedSignIn {
        let (settings, origin) = (request.settings, request.origin)
        let login = ProvedLogin(finishing: pending, with: factor)
        let isReauthentication = !pending.sessionID.isEmpty
        let unchanged =
            isReauthentication
            ? AccountEffect(account, kind: .reauthenticated, detail: pending.signInProvider) : AccountEffect(account)
        let proof = try reading.emailProof(keptBy: pending, current, now: now)
        var effect = try pending.change?.effect(on: current, shown: account, proof) ?? unchanged
        if pending.signInProvider == SessionStart.customToken { effect.account.noteCustomToken() }
        if let endingOthers { effect.endsSessions = endingOthers }
        if factor.id.isEmpty {
            try appendEvent(
                .recoveryCodeUsed, tenantID: current.key.tenant, uid: current.key.uid, origin: origin, now: now)
        }
        guard isReauthentication else {
            let decided = DecidedSignIn(key: current.key, current: current, effect: effect)
            let address = pending.addressHash == 0 ? nil : pending.addressHash
            let changed = try apply(decided, address: address, origin: origin, now: now)
            let session = BegunSession(login, finishing: pending, id: sessionID, of: current.key, now: now)
            try insertSession(session.record, id: sessionID, sessionsMax: sessionsMax, settings: settings, now: now)
            return FinishedSignIn(
                grant: SessionGrant(beginning: session, of: changed.user), isNewUser: pending.isNewUser)
        }
        guard var session = try reading.storedSession(sessionID, of: current.key) else {
            throw Failure.invalidPendingSignIn
        }
        session.goOn(effect, origin: origin, now: now)
        session.move(to: login, of: account.user, now: now)
        let changed = try apply(effect, to: current, keeping: sessionID, origin: origin, now: now)
        try put(Tables.sessions, SessionKey(sessionID), session)
        return FinishedSignIn(
            grant: SessionGrant(session, id: sessionID, movedTo: login, of: changed.user), isNewUser: false)
    }

    /// Counts a wrong code; the fifth ends the sign-in.
    fileprivate func noteWrong(
        _ pending: StoredPendingSignIn, id: [UInt8], _ budget: FactorGuesses, _ request: EndUserRequest, now: Timestamp
    ) throws {
        let tenantID = request.settings.tenantID
        try spend(budget.charges, now: now)
        if pending.tries >= FactorGuesses.triesMax { try removePendingSignIn(id, pending, tenantID: tenantID) }
        try appendEvent(
            .secondFactorFailed, tenantID: tenantID, uid: pending.uid, origin: request.origin, now: now)
    }
}

extension Failure {
    static let missingPendingCredential = Failure.invalid(
        .missingMFAPendingCredential, field: "pending_credential", "is required")
}
