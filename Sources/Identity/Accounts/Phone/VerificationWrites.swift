public import Base
import Crypto
public import Messages
import Rules
public import Store

/// What comes of a code that somebody shows.
enum VerificationVerdict: Sendable {
    /// Why a code is void although it was never shown.
    enum Cause: String, Sendable {
        case expired = "EXPIRED"
        case tries = "TRIES"
    }

    case right(PhoneNumber)
    case wrong
    /// No code of this tenant's, or made for something else: whoever asks is not told which.
    case unknown
    case over(Cause)
    case tooManyTries(wait: Duration)
}

extension WriteTransaction {
    /// Puts a code together with the message that brings it; a test number's has none.
    func put(
        _ stored: StoredVerificationCode, hash: [UInt8], _ message: StoredOutboxMessage?, _ order: VerificationOrder,
        _ settings: TenantSettings, _ origin: Origin, now: Timestamp
    ) throws {
        let tenantID = settings.tenantID
        let key = TenantHashKey(tenantID, hash)
        try put(Tables.verificationCodes, key, stored)
        try scheduleExpiry(at: Timestamp(microseconds: stored.expiresAtMicros), Tables.verificationCodes, key)
        if let message { try putOutbox(message, tenantID: tenantID) }
        try appendEvent(
            .verificationCodeSent, tenantID: tenantID, uid: order.use.uid, origin: origin,
            detail: Text("\(order.use.purpose) \(order.number.region?.text ?? "none")"), now: now)
    }

    /// Judges the code whose tag is shown, and counts it when it is wrong. Nothing else changes: the code is used up by
    /// what it is used for.
    func judge(
        hash: [UInt8], tag: [UInt8], for uses: [VerificationUse], settings: TenantSettings, origin: Origin,
        now: Timestamp
    ) throws -> VerificationVerdict {
        let key = TenantHashKey(settings.tenantID, hash)
        guard var stored = try get(Tables.verificationCodes, key),
            let use = uses.first(where: { stored.isFor($0) }), let number = PhoneNumber(stored.phoneNumber)
        else { return .unknown }
        guard stored.isGood(at: now) else { return .over(.expired) }
        guard stored.wrongTries < VerificationCodes.wrongTriesMax else { return .over(.tries) }
        let isTest = settings.testCode(of: number) != nil
        let budget = SMSBudgets.wrongTestCodes(number, tenantID: settings.tenantID)
        // A right code is not told from a wrong one where too many were wrong.
        if isTest, let wait = try wait(budget, now: now) { return .tooManyTries(wait: wait) }
        if !stored.codeTag.isEmpty, constantTimeEqual(stored.codeTag, tag) { return .right(number) }
        stored.wrongTries += 1  // Proof: it is below wrongTriesMax.
        try put(Tables.verificationCodes, key, stored)
        if isTest { try spend([budget], now: now) }
        if stored.wrongTries == VerificationCodes.wrongTriesMax {
            try appendEvent(
                .verificationCodeExhausted, tenantID: settings.tenantID, uid: use.uid, origin: origin,
                detail: Text("\(use.purpose)"), now: now)
        }
        return .wrong
    }

    /// Uses up a proved number, in the transaction of what it is used for.
    ///
    /// INVALID_SESSION_INFO or INVALID_TEMPORARY_PROOF when somebody else came first.
    public func use(_ proved: ProvedNumber, tenantID: Text) throws {
        let key = TenantHashKey(tenantID, proved.sessionHash)
        let stored = try get(Tables.verificationCodes, key)
        if let end = proved.proofEndsAt {
            try useTemporaryProof(proved, until: end, tenantID: tenantID)
        } else if stored == nil {
            throw Failure.invalidSessionInfo
        }
        guard let stored else { return }
        try delete(Tables.verificationCodes, key)
        try cancelExpiry(at: Timestamp(microseconds: stored.expiresAtMicros), Tables.verificationCodes, key)
    }
}

extension VerificationUse {
    /// The user it is for, where it is for one.
    fileprivate var uid: Text {
        switch self {
        case .link(let uid), .secondFactorEnrollment(let uid): uid
        case .signIn, .secondFactorSignIn: .empty
        }
    }
}

extension StoredVerificationCode: ExpiringRecord {
    /// What it was made for, and for whom.
    fileprivate func isFor(_ use: VerificationUse) -> Bool { purpose == use.purpose && subject == use.subject }

    /// A code made ahead of the time is not: a clock was wrong, and it would live until that time.
    fileprivate func isGood(at now: Timestamp) -> Bool {
        now < Timestamp(microseconds: expiresAtMicros)
            && Timestamp(microseconds: createdAtMicros) - now <= TimeKeeping.slack
    }

    public static func expire(
        _ key: TenantHashKey, of table: Table<TenantHashKey, Self>, in transaction: borrowing WriteTransaction,
        now _: Timestamp
    ) throws {
        try transaction.delete(table, key)
    }
}
