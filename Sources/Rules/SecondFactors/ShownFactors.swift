public import Base
public import Messages

// The factors that the holder of a session, or of recovery codes, has had in hand. When a factor is removed, its phone
// or app may be somebody else's, and so may these sessions and codes.

extension StoredSession {
    /// The factors that the session has shown. Nil: they are not known, and may be any of the user's.
    public var factorsShown: StoredShownFactors? {
        secondFactor.isEmpty ? StoredShownFactors() : shownFactors
    }

    /// Whether the session has shown the factor, or may have shown it.
    public func mayHaveShown(_ factorID: Text) -> Bool {
        factorsShown?.factorIDs.contains(factorID) ?? true
    }

    /// Notes that the user showed a factor in the session, and keeps the factors that were shown before.
    ///
    /// `name` and `id` are the factor's in the session's tokens. `shown` is what counts as shown with it; nil: not
    /// known. `user` has the factors that are left: the others are forgotten, so that there are never many.
    public mutating func noteShown(_ name: Text, _ id: Text, _ shown: StoredShownFactors?, of user: User) {
        let before = factorsShown
        (secondFactor, secondFactorID) = (name, id)
        guard var known = before, let shown else {
            shownFactors = nil
            return
        }
        for id in shown.factorIDs where !known.factorIDs.contains(id) { known.factorIDs.append(id) }
        known.factorIDs.removeAll { id in !user.secondFactors.contains { $0.factorID == id } }
        shownFactors = known
    }
}

extension StoredSecondFactors {
    /// Replaces the recovery codes. `shown` are the factors that the session has shown in which they were made; nil:
    /// not known.
    public mutating func setRecoveryCodes(_ tags: [[UInt8]], madeAfter shown: StoredShownFactors?) {
        recoveryCodes = tags
        recoveryCodesMadeAfter = shown
    }

    public mutating func voidRecoveryCodes() { setRecoveryCodes([], madeAfter: nil) }

    /// Whether somebody who had the factor made the recovery codes, or may have made them.
    public func recoveryCodesMayBe(of factorID: Text) -> Bool {
        recoveryCodesMadeAfter?.factorIDs.contains(factorID) ?? true
    }
}
