import Base
import Messages
import Rules
import Store
import Tokens

/// The permission for a session to have tokens: the `TokenIssuer` issues them for nothing else.
///
/// There is an initialiser for each way a session gets new tokens, and each takes the values that show that the session
/// may have them.
struct SessionGrant: Sendable {
    let user: User
    let session: StoredSession
    let sessionID: [UInt8]
    /// Whether its holder gets the session's newest refresh token.
    var givesRefreshToken = true

    /// A session that begins with a login.
    init(beginning session: BegunSession, of user: User) {
        self.user = user
        self.session = session.record
        self.sessionID = session.id
    }

    /// A session that goes on after a change made with its token.
    init(_ session: StoredSession, goingOnAfterChangeBy token: VerifiedToken, of user: User) {
        self.user = user
        self.session = session
        self.sessionID = token.sessionID
    }

    /// A session whose login was renewed with a second factor.
    init(_ session: StoredSession, id: [UInt8], movedTo login: ProvedLogin, of user: User) {
        self.user = user
        self.session = session
        self.sessionID = id
    }

    /// A session whose refresh token was presented, and not refused.
    init(_ decided: DecidedRefresh, of token: RefreshToken) {
        self.user = decided.user
        self.session = decided.session
        self.sessionID = token.sessionID
        if case .repeatedWithinGrace(_, let givesSuccessor) = decided.decision { givesRefreshToken = givesSuccessor }
    }

    /// A session whose first answer was lost.
    init(_ session: StoredSession, repeating repeated: RepeatedSession, of user: User) {
        self.user = user
        self.session = session
        self.sessionID = repeated.sessionID
    }
}

/// A session that a login begins.
struct BegunSession: Sendable {
    let id: [UInt8]
    let record: StoredSession

    init(_ login: ProvedLogin, id: [UInt8], of key: UserKey, on device: Origin.Device, now: Timestamp) {
        self.id = id
        self.record = StoredSession(
            tenantID: key.tenant, uid: key.uid, createdAtMicros: now.microseconds, authTimeMicros: now.microseconds,
            signInProvider: login.start.provider, counter: 1, lastUsedAtMicros: now.microseconds,
            claimsJSON: login.start.claims, deviceName: device.name, endUserIP: device.address?.text ?? .empty,
            secondFactor: login.factor?.name ?? .empty, secondFactorID: login.factor?.id ?? .empty,
            hookClaimsJSON: login.start.hookClaims, shownFactors: login.factor?.shown)
    }

    /// The session of a sign-in that waited for a second factor, on the device that began it.
    init(
        _ login: ProvedLogin, finishing pending: StoredPendingSignIn, id: [UInt8], of key: UserKey, now: Timestamp
    ) {
        var record = BegunSession(login, id: id, of: key, on: Origin.server.device, now: now).record
        record.deviceName = pending.deviceName
        record.endUserIP = pending.endUserIP
        self.id = id
        self.record = record
    }
}

extension SignedIn {
    /// `tokens`: those of the grant.
    init(_ grant: SessionGrant, tokens: TokenPair, isNewUser: Bool = false) {
        self.init(user: grant.user, session: grant.session, tokens: tokens, isNewUser: isNewUser)
    }
}
