public import Base
public import Messages

/// The open ways back of one account: the RECOVER_EMAIL codes that went to addresses it had, and had proved. Pure.
///
/// Each way back has a place, from 1 up: the older the address, the lower its place. The time alone would not do,
/// because a clock can be set back, and because two changes can fall into one microsecond.
///
/// The rule: a person who proves an address by its way back voids this way and every later one, but no earlier one. So
/// a thief who recovers the thief's own address does not void the code that the owner was sent first.
public struct WaysBack: Sendable {
    /// The oldest address first.
    private let codes: [StoredOobCode]

    public init(_ codes: [StoredOobCode]) { self.codes = codes.sorted(by: Self.isEarlier) }

    public var isEmpty: Bool { codes.isEmpty }
    public var count: Int { codes.count }
    public var nextPlace: Int64 { (codes.last?.recoveryPlace ?? 0) + 1 }

    /// The address that the account had last, of those that were proved.
    public var newestEmail: Text? { codes.last?.email }

    /// TOO_MANY_ATTEMPTS_TRY_LATER until the oldest way back has expired.
    public func checkRoom(_ limits: Limits, now: Timestamp) throws(Failure) {
        guard count >= limits.waysBackPerUserMax, let soonest = codes.map(\.expiresAtMicros).min() else { return }
        throw .tooManyAttempts(retryAfter: Timestamp(microseconds: soonest) - now)
    }

    /// The meaning of a proof of `email`, which the account has without a proof. `isSetByAdmin`: see
    /// `Account.isEmailSetByAdmin`.
    public func meaning(ofProving email: Text, isSetByAdmin: Bool) -> ProofOfUnprovedEmail {
        if isEmpty { return .takesOver(nil) }
        guard let way = codes.first(where: { Email(stored: $0.email) == Email(stored: email) }) else {
            return isSetByAdmin ? .entersKeepingWaysBack : .isAnothers
        }
        return .takesOver(way)
    }

    /// Codes of older versions have no place; among those the time decides.
    fileprivate static func isEarlier(_ code: StoredOobCode, _ other: StoredOobCode) -> Bool {
        (code.recoveryPlace, code.createdAtMicros) < (other.recoveryPlace, other.createdAtMicros)
    }
}

/// The change of an account when its email is proved for the first time, perhaps by somebody who is not its user.
public enum ProofOfUnprovedEmail: Sendable {
    /// The prover gets the account. If there is a way back to the same address, that one and the later ones are void.
    case takesOver(StoredOobCode?)
    /// An admin, an import or a hook says that the address is the user's, and there are ways back to other addresses.
    /// The prover gets the account with its factors, and the ways back stay. A thief may have moved the account to this
    /// address, and must not void the code that the owner was sent by proving it.
    case entersKeepingWaysBack
    /// The account is another person's, who came to this address without a proof: the account had another address,
    /// which was proved, or a back end signs its user in with custom tokens. The prover gets the address and not the
    /// account.
    case isAnothers
}

extension ProofOfUnprovedEmail {
    /// Whether the proof voids `code`, which was sent for the account.
    ///
    /// The codes that remove a new second factor stay good if they were mailed to the address whose way back was used:
    /// a thief may have enrolled the factor before changing the email. If all ways back stay, these codes do, too.
    public func voids(_ code: StoredOobCode) -> Bool {
        switch self {
        case .isAnothers: return false
        case .entersKeepingWaysBack:
            return code.requestType != .recoverEmail && code.requestType != .revertSecondFactorAddition
        case .takesOver(nil): return true
        case .takesOver(let way?):
            switch code.requestType {
            case .recoverEmail: return !WaysBack.isEarlier(code, way)
            case .revertSecondFactorAddition: return Email(stored: code.email) != Email(stored: way.email)
            default: return true
            }
        }
    }
}

extension StoredOobCode {
    /// This code as a way back to the proved email of `account`, at a place.
    public func asWayBack(to account: Account, place: Int64) -> StoredOobCode {
        var way = self
        way.emailVerified = true
        way.recoveryPlace = place
        way.listsFactors = true
        way.factorIDs = account.user.secondFactors.map(\.factorID)
        return way
    }

    /// Whether the account had the factor already when its email changed and this way back was made.
    ///
    /// The way back lists the factors that there were. Times would not tell: in a cluster, each may be of another
    /// node's clock. The codes of older servers have no list. There, a factor has to be older by ten seconds, which is
    /// more than two clocks differ.
    fileprivate func isOlder(_ factor: SecondFactor) -> Bool {
        if listsFactors { return factorIDs.contains(factor.factorID) }
        return Timestamp(microseconds: factor.enrolledAtMicros)
            < Timestamp(microseconds: createdAtMicros) - .seconds(10)
    }
}

extension Account {
    /// Takes the account back for the person who proved its email: removes the factors that came after the email was
    /// changed, whose mails went elsewhere, and all recovery codes, because an intruder may have renewed them. Changes
    /// nothing if the email had been proved before (nil), or if there is no way back to this email.
    public mutating func takeBack(after proof: ProofOfUnprovedEmail?) {
        guard case .takesOver(let way?)? = proof else { return }
        user.secondFactors.removeAll { !way.isOlder($0) }
        user.recoveryCodeCount = 0
    }

    /// Takes the email away. The account goes back to `former` if there is one. Password and other ways to sign in
    /// stay: an account without an email keeps its password for the next email.
    public mutating func giveUpEmail(for former: Text?, isVerified: Bool) {
        setFormerEmail(former, isVerified: isVerified)
        if former == nil { signsInByEmailLink = false }
        deriveProviders()
    }
}
