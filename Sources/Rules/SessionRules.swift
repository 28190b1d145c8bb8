public import Base
public import Messages

/// The decision on a presented refresh token and its session. Pure: time and record come in, the new record comes out.
///
/// A rotation keeps only a counter, so the successor can be computed again: an answer that got lost never signs
/// anybody out, and a stolen token that is used beside its owner's ends the session (RFC 9700 §4.14.2).
///
/// The decisions by the presented token, newest first:
///
/// | token | decision |
/// |---|---|
/// | the newest | rotated, or reused where the tenant does not rotate |
/// | the newest again, within `recordedUse` and where the tenant does not rotate | reused; nothing changes |
/// | from before a change that ended older tokens | refused with the change's reason; the session goes on |
/// | the one before the newest, with the attempt that made the newest | repeated after loss |
/// | the one before the newest, within `graceWindow`, where the tenant rotates | repeated within grace |
/// | any other | the session ends: somebody else holds its tokens |
///
/// A second holder is given the newest token within the grace, but not with two tokens in a row.
public enum RefreshDecision: Equatable, Sendable {
    /// Write `session`; its counter names the successor.
    case rotated(StoredSession)
    /// Nothing changes; the present counter names the successor.
    case repeatedAfterLoss
    /// Write the session, if there is one. Only with `givesSuccessor` the answer has the newest refresh token.
    case repeatedWithinGrace(StoredSession?, givesSuccessor: Bool)
    /// The tenant does not rotate. Write `session` (last use).
    case reused(StoredSession)
    /// The tenant does not rotate, and a use of this token a short time ago is recorded. Nothing changes.
    case reusedAgain
    /// Write `session`, which is ended now, and refuse.
    case revokedByReuse(StoredSession)
    /// Refuse; nothing changes.
    case refused(RefusedCause)

    /// The metadata `cause` of TOKEN_EXPIRED.
    public enum RefusedCause: String, Sendable {
        case revokedByReuse = "REVOKED_BY_REUSE"
        case passwordChanged = "PASSWORD_CHANGED"
        case signedOut = "SIGNED_OUT"
        case admin = "ADMIN"
        case expired = "EXPIRED"

        /// Nil for a session that was not ended.
        public init?(_ end: SessionEnd) {
            switch end {
            case .unspecified: return nil
            case .reuse: self = .revokedByReuse
            case .passwordChanged: self = .passwordChanged
            case .signedOut: self = .signedOut
            case .admin: self = .admin
            }
        }
    }
}

extension RefreshDecision {
    /// The session to write; nil: nothing changes.
    public var changed: StoredSession? {
        switch self {
        case .rotated(let session), .reused(let session), .revokedByReuse(let session): session
        case .repeatedWithinGrace(let session, _): session
        case .repeatedAfterLoss, .reusedAgain, .refused: nil
        }
    }
}

extension StoredSession {
    /// How long a second holder of the same token gets the same successor: two tabs that refresh at once.
    public static let graceWindow = Duration.seconds(10)

    /// How far ahead of the time a session may have begun: no clock that is further ahead is followed.
    public static let aheadMax = TimeKeeping.absenceMax

    /// Decides on a refresh token with `presentedCounter`, sent with the attempt whose hash is `attemptHash` (empty =
    /// none given). `clockDifference`: how far the clock of the node that rotated the token may be ahead of `now`; zero
    /// outside of a cluster.
    public func refreshing(
        presentedCounter: UInt64, attemptHash: [UInt8], settings: TenantSettings, now: Timestamp,
        clockDifference: Duration = .zero
    ) -> RefreshDecision {
        if let cause = refusedCause(settings: settings, now: now) { return .refused(cause) }
        if presentedCounter == counter {
            if settings.refreshMode == .reuse, hasRecordedUse(settings: settings, now: now) { return .reusedAgain }
            var session = self
            session.lastUsedAtMicros = now.microseconds
            if settings.refreshMode == .reuse {
                // The presented token was received: nobody needs to repeat the attempt that made it.
                session.attemptHash = []
                session.refreshCause = .expired
                return .reused(session)
            }
            session.rotate(attemptHash: attemptHash, .expired, now: now)
            return .rotated(session)
        }
        // The successor carries `counter`. If it had been presented, the counter would have moved on, or the hash would
        // be gone. A tenant that stopped rotating has sessions whose last answer got lost, too. A change that ends
        // older tokens is no exception: only the client that made the change knows the attempt.
        if presentedCounter &+ 1 == counter, !attemptHash.isEmpty, constantTimeEqual(attemptHash, self.attemptHash) {
            return .repeatedAfterLoss
        }
        if presentedCounter < counterValidFrom { return .refused(.init(olderTokensEnd) ?? .signedOut) }
        if presentedCounter &+ 1 == counter {
            let sinceRotation = now - Timestamp(microseconds: rotatedAtMicros)
            // An age below that is not young: a clock was set back, and nothing is known about it.
            let isYoung = (.zero - clockDifference...Self.graceWindow).contains(sinceRotation)
            if settings.refreshMode != .reuse, isYoung { return repeatedWithinGrace() }
        }
        return .revokedByReuse(ended(.reuse, at: now))
    }

    /// The decision for a second holder of the previous token. Whoever comes second with each token may be no tab that
    /// was a moment too late, but have a copy: then the answer has no refresh token, and the holder's next refresh
    /// counts as a replay, or the owner's does if the holder is always faster.
    private func repeatedWithinGrace() -> RefreshDecision {
        if graceCounter == counter {
            return .repeatedWithinGrace(nil, givesSuccessor: graceBegunAtCounter == counter)
        }
        var session = self
        let goesOn = graceCounter != 0 && graceCounter == counter &- 1
        session.graceCounter = counter
        if !goesOn { session.graceBegunAtCounter = counter }
        return .repeatedWithinGrace(session, givesSuccessor: !goesOn)
    }

    /// How long a recorded use stands for later ones where tokens are reused. A session that nobody uses may end sooner
    /// than `sessionIdle` after its last use, by this duration.
    public static func recordedUse(_ settings: TenantSettings) -> Duration {
        min(.hours(1), settings.sessionIdle / 24)
    }

    /// Whether using the newest token now would change nothing in the record but the time of the last use, and that
    /// only a little.
    private func hasRecordedUse(settings: TenantSettings, now: Timestamp) -> Bool {
        // The first use always counts: after it the answer that had the token is not given again.
        guard !isUnused(sinceCounter: counter), attemptHash.isEmpty, refreshCause == .expired else { return false }
        // A negative age is not young: a clock was set back.
        return (.zero..<Self.recordedUse(settings)).contains(now - Timestamp(microseconds: lastUsedAtMicros))
    }

    /// Whether the refresh token with `counter` is the newest and was never presented. Where tokens are reused,
    /// presenting one changes the time of the last use, but not the counter.
    public func isUnused(sinceCounter counter: UInt64) -> Bool {
        self.counter == counter && lastUsedAtMicros == max(createdAtMicros, rotatedAtMicros)
    }

    /// Replaces the refresh token by its successor.
    public mutating func rotate(attemptHash: [UInt8], _ cause: TokenRefreshCause, now: Timestamp) {
        counter &+= 1
        refreshCause = cause
        self.attemptHash = attemptHash
        lastUsedAtMicros = now.microseconds
        rotatedAtMicros = now.microseconds
    }

    /// Refuses every refresh token but the newest from now on, without taking an older one for a replay: the user
    /// changed something because somebody else may hold older tokens.
    public mutating func endOlderTokens(_ end: SessionEnd) {
        counterValidFrom = counter
        olderTokensEnd = end
    }

    /// Why this session refuses everything, or nil while it lives.
    public func refusedCause(settings: TenantSettings, now: Timestamp) -> RefreshDecision.RefusedCause? {
        Self.refusedCause(
            end: end, createdAtMicros: createdAtMicros, lastUsedAtMicros: lastUsedAtMicros, settings: settings, now: now
        )
    }

    /// The cause of a refusal, for callers with only these fields.
    public static func refusedCause(
        end: SessionEnd, createdAtMicros: Int64, lastUsedAtMicros: Int64, settings: TenantSettings, now: Timestamp
    ) -> RefreshDecision.RefusedCause? {
        if let cause = RefreshDecision.RefusedCause(end) { return cause }
        let idleSince = Timestamp(microseconds: max(lastUsedAtMicros, createdAtMicros))
        let created = Timestamp(microseconds: createdAtMicros)
        if now - idleSince > settings.sessionIdle || now - created > settings.sessionAbsolute { return .expired }
        // The session began under a clock that was far ahead: it would live until that time, and then for its own
        // lifetime.
        if created - now > Self.aheadMax { return .expired }
        return nil
    }

    /// Why a session without a record is over, by its id alone. An old session expired; a younger one was removed, to
    /// make room for a newer session or with its account.
    public static func causeOfAbsence(
        ofSession id: [UInt8], settings: TenantSettings, now: Timestamp
    ) -> RefreshDecision.RefusedCause {
        guard let begun = SessionID.time(of: id) else { return .signedOut }
        return now - begun > min(settings.sessionIdle, settings.sessionAbsolute) ? .expired : .signedOut
    }

    public func ended(_ end: SessionEnd, at now: Timestamp) -> StoredSession {
        var session = self
        session.end = end
        session.endedAtMicros = now.microseconds
        return session
    }
}
