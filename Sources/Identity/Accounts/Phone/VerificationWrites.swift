public import Base
import Crypto
public import Messages
import Rules
public import Store

/// The verdict on a code that somebody shows.
enum VerificationVerdict: Sendable {
    /// Why a code is void although it was never shown.
    enum Cause: String, Sendable {
        case expired = "EXPIRED"
        case tries = "TRIES"
    }

    case right(PhoneNumber)
    case wrong
    /// Not a code of this tenant, or made for another use: the caller is not told which.
    case unknown
    case over(Cause)
    case tooManyTries(wait: Duration)
}

extension WriteTransaction {
    /// Puts a code together with the message that brings it; the code of a test number has no message.
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

    /// Judges the code whose tag is shown, and counts a wrong one. Nothing else changes: the change that the code
    /// allows uses it up.
    func judge(
        hash: [UInt8], tag: [UInt8], for uses: [VerificationUse], settings: TenantSettings, origin: Origin,
        now: Timestamp
    ) throws -> VerificationVerdict {
        let key = TenantHashKey(settings.tenantID, hash)
        guard var stored = try get(Tables.verificationCodes, key),
            let use = uses.first(where: { stored.isFor($0) }), let number = PhoneNumber(stored.phoneNumber),
            // The code may have been used since the backup.
            try !reading.isFromBackup(madeAt: Timestamp(microseconds: stored.createdAtMicros))
        else { return .unknown }
        guard stored.isGood(at: now) else { return .over(.expired) }
        guard stored.wrongTries < VerificationCodes.wrongTriesMax else { return .over(.tries) }
        let isTest = settings.testCode(of: number) != nil
        let budget = SMSBudgets.wrongTestCodes(number, tenantID: settings.tenantID)
        // After too many wrong codes a right one is refused as well, so that it cannot be told from a wrong one.
        if isTest, let wait = try wait(budget, now: now) { return .tooManyTries(wait: wait) }
        if !stored.codeTag.isEmpty, constantTimeEqual(stored.codeTag, tag) { return .right(number) }
        stored.wrongTries += 1  // Proof: it is below wrongTriesMax.
        try put(Tables.verificationCodes, key, stored)
        if isTest { try spend([budget], now: now) }
        if case .secondFactorSignIn = use {
            // An event, because the caller of this sign-in knows the user's first factor.
            try appendEvent(
                .secondFactorFailed, tenantID: settings.tenantID, uid: use.uid, origin: origin, now: now)
        }
        if stored.wrongTries == VerificationCodes.wrongTriesMax {
            try appendEvent(
                .verificationCodeExhausted, tenantID: settings.tenantID, uid: use.uid, origin: origin,
                detail: Text("\(use.purpose)"), now: now)
        }
        return .wrong
    }

    /// Uses up a proved number, in the transaction of the change that it allows: the code and all its temporary proofs.
    ///
    /// INVALID_SESSION_INFO or INVALID_TEMPORARY_PROOF when somebody else came first.
    public func use(_ proved: ProvedNumber, tenantID: Text, now: Timestamp) throws {
        let key = TenantHashKey(tenantID, proved.sessionHash)
        let stored = try get(Tables.verificationCodes, key)
        if proved.proofEndsAt == nil, stored == nil { throw Failure.invalidSessionInfo }
        if stored?.mayHaveProofs ?? true { try useTemporaryProofs(of: proved, tenantID: tenantID, now: now) }
        guard let stored else { return }
        try delete(Tables.verificationCodes, key)
        try cancelExpiry(at: Timestamp(microseconds: stored.expiresAtMicros), Tables.verificationCodes, key)
    }
}

extension VerificationUse {
    /// The user that the code is for; empty where it is not for one user.
    fileprivate var uid: Text {
        switch self {
        case .link(let uid), .secondFactorEnrollment(let uid), .secondFactorSignIn(_, let uid): uid
        case .signIn: .empty
        }
    }
}

extension StoredVerificationCode: ExpiringRecord {
    /// Whether the code was made for this use and subject.
    fileprivate func isFor(_ use: VerificationUse) -> Bool { purpose == use.purpose && subject == use.subject }

    /// Whether temporary proofs may have come from the code: those for second factors bring none.
    fileprivate var mayHaveProofs: Bool { purpose == .signIn || purpose == .link }

    /// Whether the code is good; a code made in the future is not: a clock was wrong, and the code would live until
    /// that time.
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
