import Base
import Messages
import Rules
import Store

/// The limits on wrong codes of second factors for one account.
///
/// | budget | limit |
/// |---|---|
/// | one pending sign-in | 5, then it is dead |
/// | an account, over all its sign-ins from devices and addresses that it does not know | 10 an hour, 30 a day |
/// | an account, from one device or address that it knows | 10 an hour, 30 a day |
/// | an account, from all devices and addresses that it knows | 30 an hour, 100 a day |
///
/// An attacker who has the password and guesses codes from elsewhere looks for one of three good codes among a million:
/// with 30 guesses a day, this takes thirty years. The owner is not slowed by that on a device that signed in before.
/// Nothing is ever locked for good.
///
/// The budgets are rows of the store beside those of SMS. A restart does not refill them.
struct FactorGuesses: Sendable {
    static let triesMax: Int32 = 5

    let charges: [SMSBudgets.Charge]

    /// `source`: the known device or address; empty: neither is known.
    init(of key: UserKey, source: [UInt8], isSynthetic: Bool) {
        func budget(_ source: [UInt8], hour: Int64, day: Int64) -> [SMSBudgets.Charge] {
            let subject = key.uid.bytes + [0] + source
            return [
                SMSBudgets.Charge(
                    row: SMSBudgets.row(.wrongFactorCodes, subject, key.tenant), max: hour, window: .hours(1)),
                SMSBudgets.Charge(
                    row: SMSBudgets.row(.wrongFactorCodesByDay, subject, key.tenant), max: day, window: .hours(24)),
            ]
        }
        // The first byte of a known source is 1 or 2.
        let ofAllKnown = source.isEmpty ? [] : budget([3], hour: 30, day: 100)
        charges = isSynthetic ? [] : budget(source, hour: 10, day: 30) + ofAllKnown
    }
}

extension GuessThrottle {
    /// The device or the address of a request, where the account knows it; empty where it knows neither.
    ///
    /// A device counts as known if its token was issued to a session that had shown a second factor: an attacker who
    /// has only the password or the mailbox can collect any number of other tokens. The token ends with the account's
    /// factors, not with the password: a thief who resets the password must not make the owner's devices unknown.
    ///
    /// An address has no such mark. The account forgot those of before its first factor (`Account.add`).
    func knownSource(of account: Account, _ request: EndUserRequest, address: EndUserAddress?, now: Timestamp)
        -> [UInt8]
    {
        if let device = deviceWithFactor(of: account, request, now: now) { return [1] + device.id }
        guard let address else { return [] }
        let hash = keys.address(address)
        guard account.knownAddresses.contains(hash) else { return [] }
        return [2] + withUnsafeBytes(of: hash.bigEndian) { [UInt8]($0) }
    }

    /// How the account knows who asks for the code of a phone factor; as `knownSource`.
    func knownAsker(
        ofFactor account: Account, _ request: EndUserRequest, address: EndUserAddress?, now: Timestamp
    ) -> KnownAsker? {
        knownAsker(of: account, by: deviceWithFactor(of: account, request, now: now), at: address)
    }

    private func deviceWithFactor(
        of account: Account, _ request: EndUserRequest, now: Timestamp
    ) -> DeviceTokens.Device? {
        let firstFactorAt = account.user.secondFactors.map(\.enrolledAtMicros).min() ?? 0
        let device = devices.device(
            in: request.deviceToken, tenantID: account.key.tenant, uid: account.key.uid,
            notBefore: max(Timestamp(microseconds: firstFactorAt), account.importedAt), now: now)
        return device?.hasShownFactor == true ? device : nil
    }
}

extension WriteTransaction {
    /// TOO_MANY_ATTEMPTS_TRY_LATER while a budget is spent: nothing is judged then.
    func requireRoom(_ guesses: FactorGuesses, now: Timestamp) throws {
        for charge in guesses.charges {
            if let wait = try wait(charge, now: now) { throw Failure.tooManyAttempts(retryAfter: wait) }
        }
    }

    /// Counts a try of a pending sign-in, before anything is judged. INVALID_MFA_PENDING_CREDENTIAL after five.
    func countTry(_ pending: inout StoredPendingSignIn, id: [UInt8], tenantID: Text) throws {
        guard pending.tries < FactorGuesses.triesMax else { throw Failure.invalidPendingSignIn }
        pending.tries += 1  // Proof: it is below triesMax.
        try put(Tables.pendingSignIns, TenantHashKey(tenantID, id), pending)
    }
}
