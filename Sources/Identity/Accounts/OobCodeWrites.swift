public import Base
public import Messages
import Rules
public import Store

extension ReadTransaction {
    /// The record of a code that may still be used. INVALID_OOB_CODE, EXPIRED_OOB_CODE.
    public func oobCode(_ code: Secret, tenantID: Text, now: Timestamp) throws -> StoredOobCode {
        guard let stored = try get(Tables.oobCodes, TenantHashKey(tenantID, OobCodes.hash(code))), !stored.decoy,
            try !mayBeUsedSinceBackup(stored)
        else { throw Failure.invalidOobCode }
        guard stored.isGood(at: now) else { throw Failure.expiredOobCode }
        try requireAskerStillWaits(stored, tenantID: tenantID, now: now)
        return stored
    }

    private func mayBeUsedSinceBackup(_ code: StoredOobCode) throws -> Bool {
        guard !OobCodes.outlivesRestore(code.requestType) else { return false }
        return try isFromBackup(madeAt: Timestamp(microseconds: code.createdAtMicros))
    }

    /// Requires of a code that an enrollment credential asked for that the credential is still good. A credential that
    /// rests on a leaked key, or on a phone that the account has lost, must not leave a new email behind.
    /// INVALID_OOB_CODE.
    private func requireAskerStillWaits(_ code: StoredOobCode, tenantID: Text, now: Timestamp) throws {
        guard !code.pendingSignInID.isEmpty else { return }
        do {
            _ = try pendingSignIn(code.pendingSignInID, .enrollment, tenantID: tenantID, now: now)
        } catch is Failure {
            throw Failure.invalidOobCode
        }
    }

    /// The record of a code of this type that may still be used. INVALID_OOB_CODE also for a code of another type.
    func oobCode(_ code: Secret, _ type: OobRequestType, tenantID: Text, now: Timestamp) throws -> StoredOobCode {
        let stored = try oobCode(code, tenantID: tenantID, now: now)
        guard stored.requestType == type else { throw Failure.invalidOobCode }
        return stored
    }

    /// The account's open ways back.
    func waysBack(of key: UserKey, now: Timestamp) throws -> WaysBack {
        WaysBack(
            try oobCodes(of: key, .recoverEmail).map(\.code).filter {
                $0.emailVerified && now < Timestamp(microseconds: $0.expiresAtMicros)
            })
    }

    /// The change of `account` when its email is proved. Nil when the email was proved before.
    func proofOfUnprovedEmail(_ account: Account, now: Timestamp) throws -> ProofOfUnprovedEmail? {
        guard !account.user.emailVerified, !account.user.email.isEmpty else { return nil }
        let meaning = try waysBack(of: account.key, now: now).meaning(
            ofProving: account.user.email, isSetByAdmin: account.isEmailSetByAdmin)
        guard case .takesOver(nil) = meaning, !account.isEmailSetByAdmin else { return meaning }
        // A second factor is enrolled only with a verified email. So the user had another email once, and came to this
        // one without a proof.
        if !account.user.secondFactors.isEmpty { return .isAnothers }
        // A back end would sign in its user, who typed the email, under this uid again (decision 0147).
        return account.signsInByCustomToken ? .isAnothers : meaning
    }

    /// Whether a person who proves the account's email gets the email and not the account. A disabled account keeps its
    /// email.
    func emailIsAnothers(_ key: UserKey, now: Timestamp) throws -> Bool {
        guard let account = try account(key), !account.user.disabled,
            case .isAnothers? = try proofOfUnprovedEmail(account, now: now)
        else {
            return false
        }
        return true
    }

    /// The account that has an email, and whether the person who proves the email is signed in to that account.
    func holder(of email: Email, tenantID: Text, now: Timestamp) throws -> EmailHolder? {
        guard let uid = try uid(ofEmail: email, tenantID: tenantID) else { return nil }
        return EmailHolder(uid: uid, isAnothers: try emailIsAnothers(UserKey(tenantID, uid), now: now))
    }

    /// The account's codes of one kind, also those that have expired.
    func oobCodes(of key: UserKey, _ type: OobRequestType) throws -> [(hash: [UInt8], code: StoredOobCode)] {
        try oobCodes(OobSubjectKey(key, type))
    }

    fileprivate func oobCodes(_ prefix: OobSubjectKey) throws -> [(hash: [UInt8], code: StoredOobCode)] {
        var hashes: [[UInt8]] = []
        try scan(Tables.oobCodeBySubject, prefix: prefix) { row in
            hashes.append(try row.key.codeHash)
            return true
        }
        return try hashes.compactMap { hash in
            try get(Tables.oobCodes, TenantHashKey(prefix.tenant, hash)).map { (hash, $0) }
        }
    }
}

/// The account that has an email.
struct EmailHolder: Equatable {
    let uid: Text
    /// `ProofOfUnprovedEmail.isAnothers`
    let isAnothers: Bool
}

extension OobSubjectKey {
    /// The codes of an account; with `type`, those of this kind.
    fileprivate init(_ key: UserKey, _ type: OobRequestType? = nil) {
        self.init(key.tenant, subject: OobCodes.subject(uid: key.uid), kind: type?.keyByte)
    }

    /// The row of a code, or without `codeHash` all codes of its kind and subject.
    fileprivate init(_ tenantID: Text, of code: StoredOobCode, codeHash: [UInt8] = []) {
        self.init(
            tenantID, subject: OobCodes.subject(of: code), kind: code.requestType.keyByte, codeHash: codeHash)
    }
}

extension OobRequestType {
    /// The kind as it stands in the keys of `Tables.oobCodeBySubject`.
    fileprivate var keyByte: UInt8 {
        // Proof: the kinds of codes have numbers below 128.
        UInt8(rawValue)
    }
}

extension Account {
    var key: UserKey { UserKey(user.tenantID, user.uid) }
}

extension WriteTransaction {
    /// Keeps a new code, and voids older ones if there are too many (`OobCodes.keptMax`).
    func putOobCode(_ code: Secret, _ stored: StoredOobCode, tenantID: Text) throws {
        let hash = OobCodes.hash(code)
        if let countMax = OobCodes.keptMax(stored.requestType) {
            let older = try reading.oobCodes(OobSubjectKey(tenantID, of: stored))
            let oldest = older.sorted { $0.code.createdAtMicros < $1.code.createdAtMicros }
            for old in oldest.dropLast(countMax - 1) {
                try removeWithTwin(hash: old.hash, old.code, tenantID: tenantID)
            }
        }
        let key = TenantHashKey(tenantID, hash)
        try put(Tables.oobCodes, key, stored)
        try put(Tables.oobCodeBySubject, OobSubjectKey(tenantID, of: stored, codeHash: hash), [])
        try scheduleExpiry(at: stored.forgottenAt, Tables.oobCodes, key)
    }

    /// Uses a code up, in the transaction of the change that it allows. INVALID_OOB_CODE, EXPIRED_OOB_CODE.
    func takeOobCode(_ code: Secret, _ type: OobRequestType, tenantID: Text, now: Timestamp) throws -> StoredOobCode {
        let stored = try reading.oobCode(code, type, tenantID: tenantID, now: now)
        try removeOobCode(hash: OobCodes.hash(code), stored, tenantID: tenantID)
        if OobCodes.isUsedWithOthers(type) { try removeOobCodes(OobSubjectKey(tenantID, of: stored)) }
        return stored
    }

    /// Voids all codes that were sent for an account, also the way back to an old email. Codes that its user asked for
    /// must not work after somebody else proved to be its owner. With `type`, only those of this kind.
    func removeOobCodes(
        of key: UserKey, _ type: OobRequestType? = nil, where isVoid: (StoredOobCode) -> Bool = { _ in true }
    ) throws {
        try removeOobCodes(OobSubjectKey(key, type), where: isVoid)
    }

    /// Voids the sign-in links that were sent to the email of `account`. If the account loses the email, a link must
    /// not make another account for the person who asked for it, nor lead into the account that gets the email next. If
    /// the account gets a new password, the person to be kept out may have read a link.
    ///
    /// Links to an email that the user only typed stay. It may be another person's, whose links anybody could void
    /// otherwise, by signing up with the email and deleting the account.
    func removeSignInLinks(toEmailOf account: Account) throws {
        guard !account.user.email.isEmpty, account.user.emailVerified || account.isEmailSetByAdmin else { return }
        let link = StoredOobCode(requestType: .emailSignin, email: account.user.email)
        try removeOobCodes(OobSubjectKey(account.key.tenant, of: link))
    }

    /// Removes what a proof of the account's email removes besides the account's own fields (`Account.takeBack`): the
    /// secrets of its former factors, and the codes that are void by now. The caller writes the account.
    func takeBack(_ account: Account, after proof: ProofOfUnprovedEmail?) throws {
        guard let proof else { return }
        if case .takesOver(.some) = proof { try removeFormerSecrets(of: account) }
        try removeOobCodes(of: account.key) { proof.voids($0) }
    }

    /// Voids the codes that were asked for in a session, when it ended because it may have been somebody else's.
    func removeOobCodesAskedFromSessions(of key: UserKey) throws {
        try removeOobCodes(of: key, .verifyAndChangeEmail)
    }

    private func removeOobCodes(
        _ prefix: OobSubjectKey, where isVoid: (StoredOobCode) -> Bool = { _ in true }
    ) throws {
        for (hash, stored) in try reading.oobCodes(prefix) where isVoid(stored) {
            try removeWithTwin(hash: hash, stored, tenantID: prefix.tenant)
        }
    }

    private func removeWithTwin(hash: [UInt8], _ stored: StoredOobCode, tenantID: Text) throws {
        try removeOobCode(hash: hash, stored, tenantID: tenantID)
        if OobCodes.isRejectable(stored.requestType) { try voidTwin(of: stored, tenantID: tenantID) }
    }

    /// Voids the other code of the same mail.
    func voidTwin(of code: StoredOobCode, tenantID: Text) throws {
        try removeOobCode(hash: code.twinHash, tenantID: tenantID)
    }

    fileprivate func removeOobCode(hash: [UInt8], tenantID: Text) throws {
        guard !hash.isEmpty, let stored = try get(Tables.oobCodes, TenantHashKey(tenantID, hash)) else { return }
        try removeOobCode(hash: hash, stored, tenantID: tenantID)
    }

    private func removeOobCode(hash: [UInt8], _ stored: StoredOobCode, tenantID: Text) throws {
        let key = TenantHashKey(tenantID, hash)
        try delete(Tables.oobCodes, key)
        try cancelExpiry(at: stored.forgottenAt, Tables.oobCodes, key)
        try delete(Tables.oobCodeBySubject, OobSubjectKey(tenantID, of: stored, codeHash: hash))
    }
}

extension StoredOobCode {
    /// The time of the record's row in the table of expiries: the same from the first write to the last.
    fileprivate var forgottenAt: Timestamp {
        Timestamp(microseconds: expiresAtMicros) + OobCodes.rememberedAfterExpiry
    }
}

extension StoredOobCode: ExpiringRecord {
    public static func expire(
        _ key: TenantHashKey, of _: Table<TenantHashKey, Self>, in transaction: borrowing WriteTransaction,
        now _: Timestamp
    ) throws {
        try transaction.removeOobCode(hash: key.hash, tenantID: key.tenant)
    }
}
