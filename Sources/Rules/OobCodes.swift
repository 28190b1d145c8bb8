public import Base
import Crypto
public import Messages

/// The rules for codes that are sent to a mailbox, by kind. Pure.
///
/// A code is 256 random bits, kept as its hash, for one use. Which older codes a newer one voids: `keptMax`.
public enum OobCodes {
    /// How long a code is good. A recovery has to outlive a holiday: its mailbox is the owner's last way back.
    public static func lifetime(_ type: OobRequestType) -> Duration {
        switch type {
        case .emailSignin: .seconds(15 * 60)
        case .recoverEmail, .revertSecondFactorAddition: .hours(24 * 7)
        case .unspecified, .verifyEmail, .passwordReset, .verifyAndChangeEmail, .rejectEmail: .hours(1)
        }
    }

    /// How much longer an expired code can be told from one that never existed.
    public static let rememberedAfterExpiry = Duration.hours(24)

    /// How many codes of a kind an account or an address has at most: one more voids the oldest. Nil for kinds of which
    /// a newer code voids none.
    ///
    /// Only their user asks for codes that verify an email, and has the newest. Anybody may ask for a PASSWORD_RESET or
    /// an EMAIL_SIGNIN, and would void the code that the owner is about to use. So those stay, as many as one node
    /// sends to the mailbox in an hour, and go together when one is used. An attacker who changes an email twice must
    /// not void the RECOVER_EMAIL that its owner was sent. A REJECT_EMAIL is voided with its twin only: once the twin
    /// was used, a newer mail, perhaps to another mailbox, must not void the code that the first mailbox was sent.
    public static func keptMax(_ type: OobRequestType) -> Int? {
        switch type {
        case .recoverEmail, .rejectEmail, .revertSecondFactorAddition: nil
        case .passwordReset, .emailSignin: 10
        case .unspecified, .verifyEmail, .verifyAndChangeEmail: 1
        }
    }

    /// Whether a code, when it is used, voids the others of its kind.
    public static func isUsedWithOthers(_ type: OobRequestType) -> Bool { keptMax(type).map { $0 > 1 } ?? false }

    /// Whether a mail of this kind carries a second code, REJECT_EMAIL.
    public static func isRejectable(_ type: OobRequestType) -> Bool {
        type == .verifyEmail || type == .verifyAndChangeEmail
    }

    /// Whether a code of this kind stays good in a store that was restored from a backup, although it may have been
    /// used since. Such a code only undoes a change of the account, and the restore may have brought the change back.
    public static func outlivesRestore(_ type: OobRequestType) -> Bool {
        switch type {
        case .recoverEmail, .rejectEmail, .revertSecondFactorAddition: true
        case .unspecified, .verifyEmail, .passwordReset, .emailSignin, .verifyAndChangeEmail: false
        }
    }

    /// Whether a code was sent to `email`, or only works while the account has it.
    public static func isAbout(_ code: StoredOobCode, _ email: Text) -> Bool {
        let email = Email(stored: email)
        if Email(stored: code.email) == email { return true }
        return code.requestType != .recoverEmail && Email(stored: code.newEmail) == email
    }

    /// The subject of a code. Codes with the same subject void each other, and are removed together when an account is
    /// taken over. The subject is a user, or an email address for a code that needs no user.
    public static func subject(of code: StoredOobCode) -> [UInt8] {
        if code.requestType != .emailSignin, !code.uid.isEmpty { return subject(uid: code.uid) }
        return Digest.sha256([UInt8]("email".utf8) + [0] + (Email(stored: code.email)?.canonical ?? code.email).bytes)
    }

    public static func subject(uid: Text) -> [UInt8] { Digest.sha256([UInt8]("uid".utf8) + [0] + uid.bytes) }

    public static func hash(_ code: Secret) -> [UInt8] { code.withBytes { Digest.sha256($0) } }
}

extension Account {
    /// The account after a code from a mail was applied. INVALID_OOB_CODE when the account has another email by now:
    /// the code proved something about the old one. `removed` names the ways to sign in that the account loses by a
    /// recovery of its email.
    public func applying(_ code: StoredOobCode) throws(Failure) -> (account: Account, removed: Text) {
        var account = self
        var removed = Text.empty
        switch code.requestType {
        case .verifyEmail:
            try requireEmail(code.email)
            account.user.emailVerified = true
        case .verifyAndChangeEmail:
            // A user who had no email gets a first one.
            if !code.email.isEmpty || !user.email.isEmpty { try requireEmail(code.email) }
            account.user.email = code.newEmail
            account.user.emailVerified = true
        case .recoverEmail:
            guard code.emailVerified else { throw .invalidOobCode }
            // The person who changed the email may know the password or have linked an identity. Only the mailbox is
            // proved.
            account.user.email = code.email
            removed = account.keepOnlyProved(by: nil)
        case .rejectEmail: account.giveUpEmail(for: code.formerEmail, isVerified: code.emailVerified)
        case .passwordReset, .emailSignin, .revertSecondFactorAddition, .unspecified: throw .invalidOobCode
        }
        account.deriveProviders()
        return (account, removed)
    }

    /// The account with the password that a code of PASSWORD_RESET sets. An email that nobody had verified is proved
    /// only now: the earlier ways to sign in are removed, and `removed` names them.
    public func resetting(
        passwordHash: Text, by code: StoredOobCode, now: Timestamp
    ) throws(Failure) -> (account: Account, removed: Text) {
        guard code.requestType == .passwordReset else { throw .invalidOobCode }
        try requireEmail(code.email)
        var account = self
        let removed = user.emailVerified ? Text.empty : account.keepOnlyProved(by: nil)
        account.user.emailVerified = true
        account.passwordHash = passwordHash
        account.passwordUpdatedAt = now
        account.deriveProviders()
        return (account, removed)
    }

    private func requireEmail(_ email: Text) throws(Failure) {
        guard let own = Email(stored: user.email), own == Email(stored: email) else { throw .invalidOobCode }
    }
}

extension StoredOobCode {
    /// Whether the code is good; a code made in the future is not: a clock was wrong, and the code would live until
    /// that time.
    public func isGood(at now: Timestamp) -> Bool {
        now < Timestamp(microseconds: expiresAtMicros)
            && Timestamp(microseconds: createdAtMicros) - now <= TimeKeeping.slack
    }

    /// The mailbox a code was sent to.
    public var recipient: Text { newEmail.isEmpty || requestType == .recoverEmail ? email : newEmail }

    /// For a REJECT_EMAIL whose twin was used: the account's email before that. Nil when there was none, and when it
    /// was the same address, which is to be taken away. Nil also while the twin was not used: then the account did not
    /// come to the address by this mail.
    public var formerEmail: Text? {
        guard applied, !newEmail.isEmpty, !email.isEmpty, Email(stored: email) != Email(stored: newEmail) else {
            return nil
        }
        return email
    }
}

extension Failure {
    public static let invalidOobCode = Failure(
        .invalidOOBCode,
        "The code is wrong, used up or replaced by a newer one; ask for another.")
    public static let expiredOobCode = Failure(
        .expiredOOBCode, "The code has expired; ask for another.")
    public static let missingOobCode = Failure.invalid(.missingOOBCode, field: "oob_code", "is required")
}
