public import Base
public import Messages
public import Rules
public import Store

// "This was not me": the second code of a mail that asks somebody to prove an address. It is put and voided together
// with the first code. When the first code is used, the second one stays, and can take the address away from the
// account again. It takes away a verified address also if the address was not proved by this mail (decision 0023).

extension WriteTransaction {
    /// Removes the account's expired REJECT_EMAIL codes if there would be too many with that of `code`'s mail. Until
    /// then they tell a person that the link came too late.
    func makeRoomForRejection(of code: StoredOobCode, account key: UserKey, _ limits: Limits, now: Timestamp) throws {
        guard try reading.otherRejections(of: key, than: code).count >= limits.rejectionsPerUserMax else { return }
        try removeOobCodes(of: key, .rejectEmail) { $0.expiresAtMicros <= now.microseconds }
    }

    /// Notes that a code was used, for the REJECT_EMAIL of its mail; `account` is the account as it was before.
    func noteApplied(_ code: StoredOobCode, to account: Account) throws {
        guard OobCodes.isRejectable(code.requestType), !code.twinHash.isEmpty else { return }
        let key = TenantHashKey(account.user.tenantID, code.twinHash)
        guard var rejection = try get(Tables.oobCodes, key), rejection.requestType == .rejectEmail else { return }
        rejection.applied = true
        rejection.emailVerified = account.user.emailVerified
        try put(Tables.oobCodes, key, rejection)
    }

    /// Notes that `email` left the account. The REJECT_EMAIL codes that were mailed there put no former address back
    /// from then on, even if the account gets the address again in another way: that would be an address which the
    /// account left long ago.
    func noteLeft(_ email: Text, account key: UserKey) throws {
        for (hash, code) in try reading.oobCodes(of: key, .rejectEmail)
        where code.applied && Email(stored: code.recipient) == Email(stored: email) {
            var rejection = code
            rejection.applied = false
            try put(Tables.oobCodes, TenantHashKey(key.tenant, hash), rejection)
        }
    }

    /// Takes the address of a REJECT_EMAIL away from the account. If the account does not have the address, or has it
    /// without a proof and the code's twin was not used, the account stays as it is and only the twin is void.
    ///
    /// The account may have proved the address by an earlier mail, or in another way. The code takes it away all the
    /// same: the mail says so, and its reader may have no other link.
    func rejecting(_ code: StoredOobCode, in account: Account) throws -> AccountEffect {
        let key = account.key
        try voidTwin(of: code, tenantID: key.tenant)
        let mayTake = code.applied || account.user.emailVerified
        guard mayTake, Email(stored: account.user.email) == Email(stored: code.recipient) else {
            return AccountEffect(account, kind: .emailRejected, detail: "not the account's")
        }
        var code = code
        if let former = code.formerEmail, try !isFree(former, for: key) { code.newEmail = .empty }
        let changed = try account.applying(code).account
        try removeOobCodes(of: key) { OobCodes.isAbout($0, account.user.email) }
        return AccountEffect(changed, kind: .emailRejected, detail: "taken away", endsSessions: .signedOut)
    }
}

extension ReadTransaction {
    /// TOO_MANY_ATTEMPTS_TRY_LATER when the account has so many valid REJECT_EMAIL codes that the mail of `code` cannot
    /// be used.
    ///
    /// The number of an account's codes is bounded, because a write that ends its sessions reads all of them.
    func checkRoomForRejection(of code: StoredOobCode, account key: UserKey, _ limits: Limits, now: Timestamp) throws {
        let expiries = try otherRejections(of: key, than: code).map(\.expiresAtMicros).filter { now.microseconds < $0 }
        guard expiries.count >= limits.rejectionsPerUserMax else { return }
        // There is room for another code when this one has expired, and those that expire before it.
        let last = expiries.sorted()[expiries.count - limits.rejectionsPerUserMax]
        throw Failure.tooManyAttempts(retryAfter: Timestamp(microseconds: last) - now)
    }

    fileprivate func otherRejections(of key: UserKey, than code: StoredOobCode) throws -> [StoredOobCode] {
        try oobCodes(of: key, .rejectEmail).filter { $0.hash != code.twinHash }.map(\.code)
    }

    /// The account that a page shows to the person who was mailed a code. Nil where there is no account, or the code is
    /// of another kind.
    public func joinedAccount(_ code: StoredOobCode, settings: TenantSettings, now: Timestamp) throws -> OobAccount? {
        guard OobCodes.isRejectable(code.requestType) || code.requestType == .rejectEmail else { return nil }
        let key = UserKey(settings.tenantID, code.uid)
        guard let account = try account(key) else { return nil }
        let sessionCount = try liveSessions(of: key, settings: settings, now: now).count
        return OobAccount(
            displayName: account.user.displayName, createdAtMicros: account.user.createdAtMicros,
            liveSessionCount: Int32(clamping: sessionCount), signInMethods: account.signInMethods)
    }
}
