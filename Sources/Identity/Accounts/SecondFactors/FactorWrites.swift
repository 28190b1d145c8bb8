import Base
import Messages
import Rules
import Store

// Adding second factors to an account and removing them: in the user's list, and in the row with their secrets.

extension WriteTransaction {
    /// Adds a factor to the account. A user who has no recovery codes gets new ones, which are returned only now.
    ///
    /// `sealedSecret` is the secret of an authenticator app; for `address` see `Account.add`. `shown` are the factors
    /// that the session has shown so far; nil: not known. The caller writes the account.
    func addFactor(
        _ factor: SecondFactor, from address: UInt64?, sealedSecret: [UInt8] = [], lastStep: Int64 = 0,
        to account: inout Account, after shown: StoredShownFactors?, secrets: FactorSecrets
    ) throws -> [Secret] {
        let key = account.key
        var stored = try get(Tables.secondFactors, key) ?? StoredSecondFactors()
        if factor.kind == .totp {
            stored.totps.append(
                StoredTotp(factorID: factor.factorID, sealedSecret: sealedSecret, lastStep: lastStep))
            stored.enrollment = nil
        }
        var codes: [Secret] = []
        if stored.recoveryCodes.isEmpty {
            let made = secrets.makeRecoveryCodes(of: key)
            codes = made.codes
            let shownNow = shown.map { StoredShownFactors(factorIDs: $0.factorIDs + [factor.factorID]) }
            stored.setRecoveryCodes(made.tags, madeAfter: shownNow)
            account.user.recoveryCodeCount = Int32(clamping: codes.count)
        }
        account.add(factor, from: address)
        try put(Tables.secondFactors, key, stored)
        return codes
    }

    /// Removes a factor from the account. Recovery codes that somebody who had the factor may have made become void.
    /// With the last factor all secrets and recovery codes go. The caller writes the account.
    func removeFactor(_ id: Text, from account: inout Account) throws {
        account.user.secondFactors.removeAll { $0.factorID == id }
        if account.user.secondFactors.isEmpty { return try removeFactors(from: &account) }
        guard var stored = try get(Tables.secondFactors, account.key) else { return }
        stored.totps.removeAll { $0.factorID == id }
        if stored.recoveryCodesMayBe(of: id) {
            stored.voidRecoveryCodes()
            account.user.recoveryCodeCount = 0
        }
        try put(Tables.secondFactors, account.key, stored)
    }

    /// Removes the secrets of factors that the account does not list any more, and all recovery codes.
    func removeFormerSecrets(of account: Account) throws {
        guard !account.user.secondFactors.isEmpty else {
            try delete(Tables.secondFactors, account.key)
            return
        }
        guard var stored = try get(Tables.secondFactors, account.key) else { return }
        stored.totps.removeAll { totp in !account.user.secondFactors.contains { $0.factorID == totp.factorID } }
        stored.voidRecoveryCodes()
        try put(Tables.secondFactors, account.key, stored)
    }

    private func removeRecoveryCodes(from account: inout Account) throws {
        account.user.recoveryCodeCount = 0
        guard var stored = try get(Tables.secondFactors, account.key) else { return }
        stored.voidRecoveryCodes()
        try put(Tables.secondFactors, account.key, stored)
    }

    func removeFactors(from account: inout Account) throws {
        account.user.secondFactors = []
        account.user.recoveryCodeCount = 0
        try delete(Tables.secondFactors, account.key)
    }
}

extension WriteTransaction {
    /// Uses up a code of REVERT_SECOND_FACTOR_ADDITION: takes back a factor that somebody enrolled, and all recovery
    /// codes, which the same session could have renewed. INVALID_OOB_CODE when the factor is not there any more.
    func reverting(_ code: Secret, in account: Account, now: Timestamp) throws -> AccountEffect {
        let tenantID = account.key.tenant
        let checked = try reading.oobCode(code, .revertSecondFactorAddition, tenantID: tenantID, now: now)
        guard let factor = account.user.secondFactors.first(where: { $0.factorID == checked.factorID }) else {
            throw Failure.invalidOobCode
        }
        _ = try takeOobCode(code, .revertSecondFactorAddition, tenantID: tenantID, now: now)
        var changed = account
        try removeFactor(factor.factorID, from: &changed)
        try removeRecoveryCodes(from: &changed)
        return AccountEffect(
            changed, kind: .secondFactorReverted, detail: factor.eventDetail, endsSessions: .signedOut)
    }
}

extension SecondFactor {
    /// The factor as events name it.
    var eventDetail: Text { Text(unchecked: kind.name.bytes + [UInt8(ascii: " ")] + factorID.bytes) }
}
