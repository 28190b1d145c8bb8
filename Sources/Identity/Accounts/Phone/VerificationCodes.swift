public import Base
import Crypto
public import Messages
public import Rules
import Store

/// The use of a code that was sent to a phone number, and the user that it is for.
///
/// A code for `.signIn` may be used by any holder of the session_info: to sign in to the number's account, or, signed
/// in, to add the number or to reauthenticate. A code for another use may be used by one user or one pending sign-in
/// only.
public enum VerificationUse: Sendable, Equatable {
    case signIn
    /// Adding the number to the user's account, or changing it.
    case link(uid: Text)
    case secondFactorEnrollment(uid: Text)
    /// `pendingID` names the sign-in that waits for its second factor; it is not a secret. `uid` is its user.
    case secondFactorSignIn(pendingID: [UInt8], uid: Text)

    public var purpose: VerificationPurpose {
        switch self {
        case .signIn: .signIn
        case .link: .link
        case .secondFactorEnrollment: .secondFactorEnrollment
        case .secondFactorSignIn: .secondFactorSignIn
        }
    }

    /// The user or the pending sign-in that may use the code; empty if any holder of the session_info may.
    var subject: [UInt8] {
        switch self {
        case .signIn: []
        case .link(let uid), .secondFactorEnrollment(let uid): uid.bytes
        case .secondFactorSignIn(let pendingID, _): pendingID
        }
    }
}

/// A code that is to be sent to a phone number.
public struct VerificationOrder: Sendable {
    public let number: PhoneNumber
    public let use: VerificationUse
    /// The language of the message.
    public var locale = Text.empty
    /// The end user's address, as `EndUserRequest.address()` believes it.
    public var address: EndUserAddress?
    /// How the account that has the number knows the asker, who has a budget then that strangers cannot spend. Nil: it
    /// does not.
    public var knownAsker: KnownAsker?
    /// A decoy is written and answered like any other order, but nothing is sent, and no code is right.
    public var isDecoy = false

    public init(to number: PhoneNumber, for use: VerificationUse) {
        self.number = number
        self.use = use
    }
}

/// How an account knows who asks for a code. Each has a budget of its own: many people may share an address.
public enum KnownAsker: UInt8, Sendable {
    case address = 1, device = 2
}

/// A code that was sent.
public struct SentVerificationCode: Sendable {
    /// Without it the code is worth nothing.
    public let sessionInfo: Secret
    public let number: PhoneNumber
    public let expiresAt: Timestamp
}

/// The proof that somebody showed the code which was sent to a number. Only `VerificationCodes` and `TemporaryProofs`
/// make it.
///
/// It is used up with `WriteTransaction.use(_:tenantID:now:)`, in the transaction of the change that it allows.
public struct ProvedNumber: Sendable {
    public let number: PhoneNumber
    /// SHA-256 of the session_info whose code it was.
    let sessionHash: [UInt8]
    /// The end of a temporary proof; nil for a code.
    let proofEndsAt: Timestamp?
}

/// Makes six-digit codes, sends them to phone numbers, and judges the codes that callers show.
///
/// A code is good for one use (`VerificationUse`), for five minutes and five tries, and only together with the
/// session_info that the requester was given. The store holds an HMAC of the code. The number of codes is bounded by
/// the number of messages that may be sent (`SMSBudgets`): five codes an hour to a number are at most 25 guesses at a
/// million.
///
///     let sent = try await codes.send(VerificationOrder(to: number, for: .link(uid: uid)), request)
///     let proved = try await codes.judge(sessionInfo, code, for: [.link(uid: uid)], request)
///     try await store.write { transaction in
///         try transaction.use(proved, tenantID: request.settings.tenantID, now: now)
///     }
///
/// Each judgement is a write of its own, so that no more than five of the guesses that come at the same time are
/// judged. Any thread.
public struct VerificationCodes: Sendable {
    public static let lifetime = Duration.minutes(5)
    static let wrongTriesMax: Int32 = 5
    static let sessionInfoByteCountMax = 64

    let proofs: TemporaryProofs
    private let resources: Resources
    private let key: HMACKey
    private let outbox: SMSOutbox
    private let mailer: Mailer
    private let quotas: QuotaLedger

    /// `epoch` is the store's.
    init(
        _ resources: Resources, _ masterKey: MasterKey, epoch: [UInt8], outbox: SMSOutbox, mailer: Mailer,
        quotas: QuotaLedger
    ) {
        self.resources = resources
        self.key = masterKey.hmac("verification code")
        self.proofs = TemporaryProofs(sealing: masterKey.sealing, random: resources.random, epoch: epoch)
        self.outbox = outbox
        self.mailer = mailer
        self.quotas = quotas
    }

    /// Makes a code and queues its SMS.
    ///
    /// SMS_REGION_NOT_ALLOWED, TOO_MANY_ATTEMPTS_TRY_LATER, QUOTA_EXCEEDED; ALREADY_DONE for a repeated request.
    public func send(_ order: VerificationOrder, _ request: EndUserRequest) async throws -> SentVerificationCode {
        let (settings, now) = (request.settings, resources.clock.now())
        let test = settings.testCode(of: order.number)
        if test == nil { try settings.checkMayBeSent(order.number) }
        let code = test?.bytes ?? SMSRules.makeCode(resources.random)
        let sessionInfo = Secret(Base64.url.encode(resources.random.bytes(32)))
        let hash = Self.hash(sessionInfo)
        let expiresAt = now + Self.lifetime
        let stored = StoredVerificationCode(
            phoneNumber: order.number.text, purpose: order.use.purpose, subject: order.use.subject,
            codeTag: order.isDecoy ? [] : key.tag(of: hash + code), createdAtMicros: now.microseconds,
            expiresAtMicros: expiresAt.microseconds)
        let message =
            try test != nil
            ? nil
            : outbox.message(
                order.use.purpose, code: code, to: order.number, locale: order.locale,
                appName: settings.tenant.displayName, goodUntil: expiresAt, tenantID: settings.tenantID,
                isDecoy: order.isDecoy, now: now)
        let charges = SMSBudgets.charges(for: order, request, isTest: test != nil, limits: quotas.limits)
        try await quotas.refusing(settings) {
            try await resources.store.write { transaction in
                try transaction.refusingRepeat(of: request.origin, now: now) {
                    // Once a deleted tenant's rows are purged, nothing would remove a new one again.
                    try transaction.reading.requireLiveTenant(settings.tenantID)
                    try transaction.spend(charges, now: now)
                    try transaction.put(stored, hash: hash, message, order, settings, request.origin, now: now)
                }
            }
        }
        if message != nil { mailer.wakeSoon() }
        return SentVerificationCode(sessionInfo: sessionInfo, number: order.number, expiresAt: expiresAt)
    }

    /// Judges a code. A wrong code is counted, no matter how the call ends.
    ///
    /// `uses`: the uses that the caller allows; the code must have been made for one of them. Checks in order:
    /// MISSING_SESSION_INFO, MISSING_VERIFICATION_CODE, INVALID_SESSION_INFO (not one of this tenant's, used, or for
    /// another use), SESSION_EXPIRED, TOO_MANY_ATTEMPTS_TRY_LATER (of a test number, whose code never changes),
    /// INVALID_CODE.
    public func judge(
        _ sessionInfo: Secret, _ code: Secret, for uses: [VerificationUse], _ request: EndUserRequest
    ) async throws -> ProvedNumber {
        try Self.checkForm(sessionInfo, code)
        let (settings, origin, now) = (request.settings, request.origin, resources.clock.now())
        let hash = Self.hash(sessionInfo)
        let row = TenantHashKey(settings.tenantID, hash)
        // A session_info that was never issued is refused without a write: anybody can make one up.
        guard try resources.store.read({ try $0.exists(Tables.verificationCodes, row) }) else {
            throw Failure.invalidSessionInfo
        }
        let tag = key.tag(of: hash + code.withBytes { [UInt8]($0) })
        let verdict = try await resources.store.write(for: .session) { transaction in
            try transaction.judge(hash: hash, tag: tag, for: uses, settings: settings, origin: origin, now: now)
        }
        switch verdict {
        case .right(let number): return ProvedNumber(number: number, sessionHash: hash, proofEndsAt: nil)
        case .wrong: throw Failure.invalidVerificationCode
        case .unknown: throw Failure.invalidSessionInfo
        case .over(let cause): throw Failure.verificationExpired(cause)
        case .tooManyTries(let wait): throw Failure.tooManyAttempts(retryAfter: wait)
        }
    }

    /// MISSING_SESSION_INFO, MISSING_VERIFICATION_CODE; values that cannot be right are refused before anything is
    /// looked up: INVALID_SESSION_INFO, INVALID_CODE.
    static func checkForm(_ sessionInfo: Secret, _ code: Secret) throws(Failure) {
        if sessionInfo.isEmpty { throw .missingSessionInfo }
        if code.isEmpty { throw .missingVerificationCode }
        guard sessionInfo.byteCount <= sessionInfoByteCountMax else { throw .invalidSessionInfo }
        guard code.withBytes({ SMSRules.isCode([UInt8]($0)) }) else { throw .invalidVerificationCode }
    }

    private static func hash(_ sessionInfo: Secret) -> [UInt8] { sessionInfo.withBytes { Digest.sha256($0) } }
}

extension Failure {
    static let missingSessionInfo = Failure.invalid(.missingSessionInfo, field: "session_info", "is required")
    static let missingVerificationCode = Failure.invalid(.missingVerificationCode, field: "code", "is required")
    static let invalidSessionInfo = Failure(
        .invalidSessionInfo, "The code was used, replaced, or made for something else; ask for another.")
    static let invalidVerificationCode = Failure(
        .invalidCode, "The code is wrong; five wrong ones make it void.")

    static func verificationExpired(_ cause: VerificationVerdict.Cause) -> Failure {
        Failure(
            .sessionExpired, "The code is void; ask for another.", metadata: [Entry("cause", cause.rawValue)])
    }
}
