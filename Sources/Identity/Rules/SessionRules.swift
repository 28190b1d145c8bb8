public import Base
public import Messages

/// What a presented refresh token means for its session. Pure: time and record come in, the new record comes out.
///
/// A rotation keeps only a counter, so the successor can be computed again: an answer that got lost never signs
/// anybody out, and a stolen token that is used beside its owner's ends the session (RFC 9700 §4.14.2).
public enum RefreshDecision: Equatable, Sendable {
    /// Write `session`; its counter names the successor.
    case rotated(StoredSession)
    /// Nothing changes; the present counter names the successor.
    case repeatedAfterLoss
    case repeatedWithinGrace
    /// The tenant does not rotate. Write `session` (last use).
    case reused(StoredSession)
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
    }
}

extension StoredSession {
    /// How long a second holder of the same token gets the same successor: two tabs that refresh at once.
    public static let graceWindow = Duration.seconds(10)

    /// Decides about a refresh token with `presentedCounter`, sent with the attempt whose hash is `attemptHash`
    /// (empty = none given).
    public func refreshing(
        presentedCounter: UInt64, attemptHash: [UInt8], settings: TenantSettings, now: Timestamp
    ) -> RefreshDecision {
        if let cause = refusedCause(settings: settings, now: now) { return .refused(cause) }
        if presentedCounter == counter {
            var session = self
            session.lastUsedAtMicros = now.microseconds
            if settings.refreshMode == .reuse {
                // What is presented was received: nobody needs to repeat the attempt that made it.
                session.attemptHash = []
                session.refreshCause = .expired
                return .reused(session)
            }
            session.rotate(attemptHash: attemptHash, .expired, now: now)
            return .rotated(session)
        }
        if presentedCounter &+ 1 == counter {
            // The successor carries `counter`; had it been presented, the counter would have moved on, or the hash be
            // gone. A tenant that stopped rotating has sessions whose last answer got lost, too.
            if !attemptHash.isEmpty, constantTimeEqual(attemptHash, self.attemptHash) { return .repeatedAfterLoss }
            let sinceRotation = now - Timestamp(microseconds: rotatedAtMicros)
            if settings.refreshMode != .reuse, sinceRotation <= Self.graceWindow { return .repeatedWithinGrace }
        }
        return .revokedByReuse(ended(.reuse, at: now))
    }

    /// The refresh token is another one from now on.
    mutating func rotate(attemptHash: [UInt8], _ cause: TokenRefreshCause, now: Timestamp) {
        counter &+= 1
        refreshCause = cause
        self.attemptHash = attemptHash
        lastUsedAtMicros = now.microseconds
        rotatedAtMicros = now.microseconds
    }

    /// Why this session refuses everything, or nil while it lives.
    public func refusedCause(settings: TenantSettings, now: Timestamp) -> RefreshDecision.RefusedCause? {
        Self.refusedCause(
            end: end, createdAtMicros: createdAtMicros, lastUsedAtMicros: lastUsedAtMicros, settings: settings, now: now
        )
    }

    /// The same for who has only these fields at hand.
    static func refusedCause(
        end: SessionEnd, createdAtMicros: Int64, lastUsedAtMicros: Int64, settings: TenantSettings, now: Timestamp
    ) -> RefreshDecision.RefusedCause? {
        switch end {
        case .unspecified: break
        case .reuse: return .revokedByReuse
        case .passwordChanged: return .passwordChanged
        case .signedOut: return .signedOut
        case .admin: return .admin
        }
        let idleSince = Timestamp(microseconds: max(lastUsedAtMicros, createdAtMicros))
        let created = Timestamp(microseconds: createdAtMicros)
        if now - idleSince > settings.sessionIdle || now - created > settings.sessionAbsolute { return .expired }
        return nil
    }

    public func ended(_ end: SessionEnd, at now: Timestamp) -> StoredSession {
        var session = self
        session.end = end
        session.endedAtMicros = now.microseconds
        return session
    }
}
