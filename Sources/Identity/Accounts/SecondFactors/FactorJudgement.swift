public import Base
import Crypto
import Messages
import Rules
import Store

/// The second factor that a user shows to finish a sign-in.
public enum ShownFactor: Sendable {
    case totp(factorID: Text, code: Secret)
    case phone(factorID: Text, code: Secret, sessionInfo: Secret)
    case recoveryCode(Secret)

    /// MISSING_MFA_ENROLLMENT_ID, MISSING_VERIFICATION_CODE, INVALID_CODE, MISSING_SESSION_INFO, INVALID_SESSION_INFO.
    func checkForm() throws(Failure) {
        switch self {
        case .totp(let factorID, let code):
            if factorID.isEmpty { throw .missingFactorID }
            if code.isEmpty { throw .missingVerificationCode }
            guard code.withBytes({ SMSRules.isCode([UInt8]($0)) }) else { throw .invalidVerificationCode }
        case .phone(let factorID, let code, let sessionInfo):
            if factorID.isEmpty { throw .missingFactorID }
            try VerificationCodes.checkForm(sessionInfo, code)
        case .recoveryCode(let code):
            if code.isEmpty { throw .missingVerificationCode }
            guard RecoveryCodes.canonical(code) != nil else { throw .invalidVerificationCode }
        }
    }
}

/// The proof that a user showed a second factor. Only this file makes it.
struct ProvedFactor: Sendable {
    /// The name in the claim `sign_in_second_factor`: "phone", "totp" or "recovery_code".
    let name: Text
    /// Empty for a recovery code.
    let id: Text
    /// The factors that count as shown: a recovery code may be used by whoever had the factors with which it was made.
    /// Nil: they are not known.
    let shown: StoredShownFactors?

    private init(name: Text, id: Text, shown: StoredShownFactors?) {
        self.name = name
        self.id = id
        self.shown = shown
    }

    fileprivate init(_ factor: SecondFactor) {
        self.init(
            name: factor.kind.name, id: factor.factorID, shown: StoredShownFactors(factorIDs: [factor.factorID]))
    }

    fileprivate init(recoveryCodeMadeAfter shown: StoredShownFactors?) {
        self.init(name: "recovery_code", id: .empty, shown: shown)
    }

    /// A factor that was just enrolled: its code was shown then.
    init(enrolled factor: SecondFactor) { self.init(factor) }
}

extension StoredSession {
    /// Notes that the user showed a factor in the session. `user` has the factors that are left.
    mutating func note(_ factor: ProvedFactor, of user: User) {
        noteShown(factor.name, factor.id, factor.shown, of: user)
    }
}

/// A factor that a user shows, to be judged in the transaction; the code of an SMS was found right before.
struct FactorClaim: Sendable {
    fileprivate enum Kind {
        case totp(factorID: Text, code: [UInt8])
        case phone(factorID: Text, ProvedNumber)
        case recoveryCode([UInt8])
    }

    fileprivate let kind: Kind

    /// Nil for an SMS, whose code `VerificationCodes` judges first.
    init?(_ shown: ShownFactor) {
        switch shown {
        case .totp(let factorID, let code):
            kind = .totp(factorID: factorID, code: code.withBytes { [UInt8]($0) })
        case .recoveryCode(let code):
            guard let code = RecoveryCodes.canonical(code) else { return nil }
            kind = .recoveryCode(code)
        case .phone: return nil
        }
    }

    init(_ number: ProvedNumber, factorID: Text) { kind = .phone(factorID: factorID, number) }

    /// The factor of the account that is claimed; nil for a recovery code. MFA_ENROLLMENT_NOT_FOUND.
    func factor(of account: Account) throws(Failure) -> SecondFactor? {
        switch kind {
        case .totp(let factorID, _):
            let factor = try account.user.secondFactor(factorID)
            guard factor.kind == .totp else { throw .factorNotFound }
            return factor
        case .phone(let factorID, let number):
            let factor = try account.user.secondFactor(factorID)
            guard factor.kind == .phone, factor.phoneNumber == number.number.text else { throw .factorNotFound }
            return factor
        case .recoveryCode:
            guard !account.user.secondFactors.isEmpty else { throw .factorNotFound }
            return nil
        }
    }

    /// INVALID_CODE for a claim that was judged to be wrong. It does not say whether the code was used before: only the
    /// factor's user can know that.
    var refusal: Failure {
        switch kind {
        case .totp: .usedOrWrongTOTP
        case .recoveryCode: .usedOrWrongRecoveryCode
        case .phone: .invalidVerificationCode
        }
    }

    /// Whether judging the claim counts a try. The try of an SMS was counted before its code was judged.
    var countsTry: Bool {
        if case .phone = kind { false } else { true }
    }
}

extension Failure {
    fileprivate static let usedOrWrongTOTP = Failure(
        .invalidCode,
        "The code is wrong, or was used before (also for enrolling): wait for the next one. Five wrong ones end the "
            + "sign-in.")
    fileprivate static let usedOrWrongRecoveryCode = Failure(
        .invalidCode, "The recovery code is wrong, or was used before; five wrong ones end the sign-in.")
}

extension WriteTransaction {
    /// Judges a claim, and uses it up when it is right; nil when it is wrong. MFA_ENROLLMENT_NOT_FOUND, for an SMS also
    /// INVALID_SESSION_INFO.
    ///
    /// A recovery code also changes `account`: the number of codes that are left.
    func judge(_ claim: FactorClaim, of account: inout Account, secrets: FactorSecrets, now: Timestamp) throws
        -> ProvedFactor?
    {
        let factor = try claim.factor(of: account)
        switch claim.kind {
        case .totp(let factorID, let code):
            guard try useTOTP(code, factorID: factorID, of: account.key, secrets: secrets, now: now) else { return nil }
        case .phone(_, let number): try use(number, tenantID: account.key.tenant, now: now)
        case .recoveryCode(let code): return try useRecoveryCode(code, of: &account, secrets: secrets)
        }
        return factor.map { ProvedFactor($0) }
    }

    private func useTOTP(
        _ code: [UInt8], factorID: Text, of key: UserKey, secrets: FactorSecrets, now: Timestamp
    ) throws -> Bool {
        guard var stored = try get(Tables.secondFactors, key),
            let index = stored.totps.firstIndex(where: { $0.factorID == factorID })
        else { throw Failure.factorNotFound }
        let secret = try secrets.open(stored.totps[index].sealedSecret, of: key)
        guard let step = TOTP.step(of: code, secret: secret, now: now, after: stored.totps[index].lastStep) else {
            return false
        }
        stored.totps[index].lastStep = step
        try put(Tables.secondFactors, key, stored)
        return true
    }

    /// Compares with all recovery codes, so that the time does not tell which one matched. Nil: none matched.
    private func useRecoveryCode(
        _ code: [UInt8], of account: inout Account, secrets: FactorSecrets
    ) throws -> ProvedFactor? {
        let key = account.key
        // A sign-in that takes the account back leaves it no recovery codes.
        guard account.user.recoveryCodeCount > 0, var stored = try get(Tables.secondFactors, key) else { return nil }
        let tag = secrets.tag(ofRecoveryCode: code, of: key)
        let left = stored.recoveryCodes.filter { !constantTimeEqual($0, tag) }
        guard left.count < stored.recoveryCodes.count else { return nil }
        stored.recoveryCodes = left
        account.user.recoveryCodeCount = Int32(clamping: left.count)
        try put(Tables.secondFactors, key, stored)
        return ProvedFactor(recoveryCodeMadeAfter: stored.recoveryCodesMadeAfter)
    }
}
