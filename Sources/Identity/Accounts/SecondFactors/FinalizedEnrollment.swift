public import Base
import Crypto
import Messages
import Rules
import Store
import Tokens

/// The result of an enrolment.
public struct FinalizedEnrollment: Sendable {
    public let signedIn: SignedIn
    /// Empty for a repeated request, like `recoveryCodes`.
    public let factorID: Text
    /// New codes for a user who had none, as with the first factor.
    public let recoveryCodes: [Secret]
    public let deviceToken: Text
}

extension SecondFactorEnrollments {
    /// Enrolls the factor whose code is shown. For the refusals see Accounts.FinalizeMfaEnrollment.
    public func finalize(
        _ sessionInfo: Secret, code: Secret, displayName: Text, _ request: EndUserRequest
    ) async throws -> FinalizedEnrollment {
        _ = try request.address()
        return try await answeringAgain({ try await answerAgain(to: request).map { finalized($0, request) } }) {
            try await enroll(sessionInfo, code: code, displayName: displayName, request)
        }
    }

    private func enroll(
        _ sessionInfo: Secret, code: Secret, displayName: Text, _ request: EndUserRequest
    ) async throws -> FinalizedEnrollment {
        try SecondFactorRules.checkOpen(request.settings)
        let user = try mayEnroll(request)
        try VerificationCodes.checkForm(sessionInfo, code)
        try SecondFactorRules.checkDisplayName(displayName, limits: resources.limits)
        let proof = try await proof(sessionInfo, code, of: user.account, request)
        try SecondFactorRules.checkAllowed(proof.kind, settings: request.settings)
        let now = resources.clock.now()
        let factor = SecondFactor(
            factorID: resources.random.alphanumeric(20), kind: proof.kind, displayName: displayName,
            phoneNumber: proof.number, enrolledAtMicros: now.microseconds)
        let enrollment = Enrollment(
            factor: factor, proof: proof, address: try request.address().map { keys.address($0) },
            mail: try mail(of: factor, to: user.account, request.settings, now: now), secrets: secrets)
        let (signedIn, recoveryCodes) = try await users.session(user.account.key).enroll(
            enrollment, user.proof, request, now: now)
        mailer.wakeNow()
        return finalized(signedIn, request, factorID: factor.factorID, recoveryCodes)
    }

    /// The answer to the same request, if it was done before. The first answer used an enrollment credential up.
    private func answerAgain(to request: EndUserRequest) async throws -> SignedIn? {
        let isCredential = request.idToken.bytes.withUnsafeBytes {
            pendingSignIns.id(in: $0, tenantID: request.settings.tenantID) != nil
        }
        return isCredential
            ? try await users.answerAgain(to: request, resources)
            : try await repeatedChanges.answer(to: request)
    }

    private func finalized(
        _ signedIn: SignedIn, _ request: EndUserRequest, factorID: Text = .empty, _ recoveryCodes: [Secret] = []
    ) -> FinalizedEnrollment {
        FinalizedEnrollment(
            signedIn: signedIn, factorID: factorID, recoveryCodes: recoveryCodes,
            deviceToken: devices.token(
                for: signedIn, renewing: request.deviceToken, random: resources.random, now: resources.clock.now()))
    }

    /// An SMS is judged here, an authenticator app's code in the transaction that uses it up.
    private func proof(
        _ sessionInfo: Secret, _ code: Secret, of account: Account, _ request: EndUserRequest
    ) async throws -> Enrollment.Proof {
        let hash = sessionInfo.withBytes { Digest.sha256($0) }
        let begun = try resources.store.read { try $0.get(Tables.secondFactors, account.key)?.enrollment }
        if let begun, constantTimeEqual(begun.sessionHash, hash) {
            return .totp(sessionHash: hash, code: code.withBytes { [UInt8]($0) })
        }
        return .phone(
            try await codes.judge(
                sessionInfo, code, for: [.secondFactorEnrollment(uid: account.user.uid)], request))
    }

    /// The mail that tells the user of the factor, with a code that takes the factor back.
    private func mail(
        of factor: SecondFactor, to account: Account, _ settings: TenantSettings, now: Timestamp
    ) throws -> PreparedOob {
        var order = OobOrder(.revertSecondFactorAddition, email: account.user.email)
        order.uid = account.user.uid
        order.displayName = account.user.displayName
        order.factorID = factor.factorID
        return try delivery.prepare(order, settings: settings, now: now)
    }
}

/// A factor that is to be enrolled, and the proof that its user has it.
struct Enrollment: Sendable {
    enum Proof: Sendable {
        case totp(sessionHash: [UInt8], code: [UInt8])
        case phone(ProvedNumber)

        var kind: SecondFactorKind {
            switch self {
            case .totp: .totp
            case .phone: .phone
            }
        }

        var number: Text {
            switch self {
            case .totp: .empty
            case .phone(let proved): proved.number.text
            }
        }
    }

    let factor: SecondFactor
    let proof: Proof
    /// The hash of the end user's address, as `KnownAddresses` keeps it.
    let address: UInt64?
    let mail: PreparedOob
    let secrets: FactorSecrets
}

extension UserSession {
    /// Enrolls a factor in the session of a token, which goes on, or in a sign-in that waits for it, which is finished.
    fileprivate func enroll(
        _ enrollment: Enrollment, _ proof: EnrollingUser.Proof, _ request: EndUserRequest, now: Timestamp
    ) async throws -> (signedIn: SignedIn, recoveryCodes: [Secret]) {
        let newID = SessionID.make(at: now, random: resources.random)
        let limits = resources.limits
        var recoveryCodes: [Secret] = []
        let signedIn = try await answeringRepeat(of: request) {
            let issue: SignInIssue<(FinishedSignIn, [Secret])> = try await write { transaction in
                switch proof {
                case .token(let user):
                    try transaction.issuingUnlessRepeated(session: user.token.sessionID, request.origin, now: now) {
                        let (current, session) = try transaction.reading.changingFactors(
                            user.token, settings: request.settings, now: now)
                        return try transaction.enroll(
                            enrollment, in: current, after: session.factorsShown, request, now: now
                        ) { account in
                            try transaction.goOn(
                                session, of: user.token, enrollment.factor, account, current, request, now: now)
                        }
                    }
                case .pending(let id):
                    try transaction.finishEnrolling(
                        enrollment, id, newID, request, sessionsMax: limits.sessionsPerUserMax, now: now)
                }
            }
            let (finished, made) = try issue.value()
            recoveryCodes = made
            return try await self.signedIn(finished, request, now: now)
        }
        return (signedIn, recoveryCodes)
    }
}

extension WriteTransaction {
    /// Judges the code, and adds the factor to the account, which `finish` writes. `shown` are the factors that the
    /// session has shown so far; nil: not known.
    fileprivate func enroll(
        _ enrollment: Enrollment, in current: Account, after shown: StoredShownFactors?, _ request: EndUserRequest,
        now: Timestamp, _ finish: (Account) throws -> FinishedSignIn
    ) throws -> SignInIssue<(FinishedSignIn, [Secret])> {
        try SecondFactorRules.checkRoom(current.user)
        // Each enrolment sends the user a mail; the budget stops somebody who does this all day.
        let budget = Self.enrollments(of: current.key)
        if let wait = try wait(budget, now: now) { throw Failure.tooManyAttempts(retryAfter: wait) }
        let factor = enrollment.factor
        var account = current
        let codes: [Secret]
        switch enrollment.proof {
        case .phone(let number):
            try SecondFactorRules.checkNew(number.number, for: current.user)
            try use(number, tenantID: current.key.tenant, now: now)
            codes = try addFactor(
                factor, from: enrollment.address, to: &account, after: shown, secrets: enrollment.secrets)
        case .totp(let sessionHash, let code):
            switch try judgeEnrollment(sessionHash, code, of: current.key, secrets: enrollment.secrets, now: now) {
            case .failure(let failure): return .refused(failure)
            case .success(let right):
                codes = try addFactor(
                    factor, from: enrollment.address, sealedSecret: right.sealedSecret, lastStep: right.step,
                    to: &account, after: shown, secrets: enrollment.secrets)
            }
        }
        try spend([budget], now: now)
        let finished = try finish(account)
        try enrollment.mail.put(in: self)
        return .tokens((finished, codes))
    }

    private static func enrollments(of key: UserKey) -> SMSBudgets.Charge {
        SMSBudgets.Charge(
            row: SMSBudgets.row(.enrollments, key.uid.bytes, key.tenant), max: 20, window: .hours(24))
    }

    /// Judges an authenticator app's code. A wrong code is counted, and the fifth ends the enrolment that was begun.
    /// INVALID_SESSION_INFO, SESSION_EXPIRED, INVALID_CODE.
    private func judgeEnrollment(
        _ sessionHash: [UInt8], _ code: [UInt8], of key: UserKey, secrets: FactorSecrets, now: Timestamp
    ) throws -> Result<(sealedSecret: [UInt8], step: Int64), Failure> {
        guard var stored = try get(Tables.secondFactors, key), var begun = stored.enrollment,
            constantTimeEqual(begun.sessionHash, sessionHash)
        else { return .failure(.invalidSessionInfo) }
        guard now < Timestamp(microseconds: begun.expiresAtMicros) else {
            return .failure(.verificationExpired(.expired))
        }
        let secret = try secrets.open(begun.sealedSecret, of: key)
        if let step = TOTP.step(of: code, secret: secret, now: now, after: 0) {
            return .success((begun.sealedSecret, step))
        }
        begun.wrongTries += 1  // Proof: what was begun ends at triesMax.
        stored.enrollment = begun.wrongTries < FactorGuesses.triesMax ? begun : nil
        try put(Tables.secondFactors, key, stored)
        return .failure(Failure(.invalidCode, "The code is wrong; five wrong ones end the enrolment."))
    }

    /// Goes on with the session in which the factor was enrolled, which has shown it. All other sessions end: they
    /// never showed it, and could go on for as long as they are used.
    fileprivate func goOn(
        _ former: StoredSession, of token: VerifiedToken, _ factor: SecondFactor, _ account: Account,
        _ current: Account, _ request: EndUserRequest, now: Timestamp
    ) throws -> FinishedSignIn {
        let effect = AccountEffect(
            account, kind: .secondFactorEnrolled, detail: factor.eventDetail, endsSessions: .signedOut)
        var session = former
        session.goOn(effect, origin: request.origin, now: now)
        session.note(ProvedFactor(enrolled: factor), of: account.user)
        let changed = try apply(effect, to: current, keeping: token.sessionID, origin: request.origin, now: now)
        try put(Tables.sessions, SessionKey(token.sessionID), session)
        return FinishedSignIn(
            grant: SessionGrant(session, goingOnAfterChangeBy: token, of: changed.user), isNewUser: false)
    }

    /// Enrolls a first factor in a sign-in that waits for it, and finishes the sign-in. All other sessions end, as in
    /// `goOn`, and with them the changes of the email that were asked for in them or with another credential.
    fileprivate func finishEnrolling(
        _ enrollment: Enrollment, _ id: [UInt8], _ newID: [UInt8], _ request: EndUserRequest, sessionsMax: Int,
        now: Timestamp
    ) throws -> SignInIssue<(FinishedSignIn, [Secret])> {
        let tenantID = request.settings.tenantID
        let (pending, current) = try reading.pendingSignIn(id, .enrollment, tenantID: tenantID, now: now)
        let sessionID = pending.sessionID.isEmpty ? newID : pending.sessionID
        return try issuingUnlessRepeated(session: sessionID, request.origin, now: now) {
            // The user has no factor that anybody could have shown before.
            try enroll(enrollment, in: current, after: StoredShownFactors(), request, now: now) { account in
                try removePendingSignIn(id, pending, tenantID: tenantID)
                try appendEvent(
                    .secondFactorEnrolled, tenantID: tenantID, uid: pending.uid, origin: request.origin,
                    detail: enrollment.factor.eventDetail, now: now)
                return try finish(
                    pending, id: sessionID, with: ProvedFactor(enrolled: enrollment.factor), account, current, request,
                    endingOthers: .signedOut, sessionsMax: sessionsMax, now: now)
            }
        }
    }
}
