import Base
import Messages
import Synchronization

/// A user who signed in. Its properties are a snapshot of the account: calls update them, and `reload` fetches them
/// again.
///
/// A `User` is independent of the `Auth` it came from: it goes on working after `signOut`, and while another user is
/// current. Any task may use it. Its calls to the server go one after the other. A call that the server refuses because
/// the session is over signs the user out, and `Auth.idTokenEvents` tells the cause. A lost connection never signs the
/// user out.
///
/// ```swift
/// if let user = auth.currentUser, !user.isEmailVerified {
///     try await user.sendEmailVerification()
/// }
/// ```
public final class User: Sendable, Identifiable {
    struct State {
        var account: Messages.User
        var tokens: TokenSet
        /// A refresh whose answer is not known yet.
        var attempt: RefreshAttempt?
        /// The callers that wait for new tokens. Empty: no task refreshes for callers.
        var refreshWaiters: [RefreshWaiter] = []
        /// How many refreshes were sent.
        var sentRefreshCount = 0
        /// The number of the newest refresh that brought tokens. The present tokens are not older.
        var answeredRefresh = 0
        /// A change whose answer is not known yet.
        var lostChange: LostChange?
        var observers: [WeakAuth] = []
        /// How many `Auth` have this user as their current user. An `Auth` that is dropped leaves the user in its
        /// storage.
        var keeperCount = 0
        /// The one writer that has this user in its storage. Two storages would be two holders of one refresh token
        /// after a restart, which the server takes for theft. Nil: the user is in no storage.
        var writer: StorageWriter?
        /// How many answers of the user's own calls have brought the account.
        var answerCount = 0
        /// The answer to a deletion was lost. If the account is gone now, that deletion was done.
        var mayBeDeleted = false
        /// The server accepts no token of this user any more.
        var isOver = false
    }

    /// The user's id in its tenant. It never changes.
    public let uid: String
    /// The user's tenant. Nil: the default pool.
    public let tenantID: String?
    let backend: Backend
    let turns = Turns()
    let sessionEnd = SessionEnd()
    let state: Mutex<State>

    init(_ account: Messages.User, _ tokens: TokenSet, attempt: RefreshAttempt? = nil, backend: Backend) {
        self.uid = account.uid.string
        // From the server's answer: with a key that is bound to a tenant, the request need not name the tenant.
        self.tenantID = account.tenantID.stringOrNil
        self.backend = backend
        self.state = Mutex(State(account: account, tokens: tokens, attempt: attempt))
    }

    /// Ends the session of a user who was signed out or replaced, when the last reference is dropped: nobody could use
    /// its tokens any more.
    deinit {
        let end = state.withLock { $0.keeperCount == 0 && !$0.isOver ? $0.tokens.refreshToken : nil }
        guard let token = end else { return sessionEnd.wasTried() }
        Task { [backend, sessionEnd] in
            await backend.endSession(of: token)
            sessionEnd.wasTried()
        }
    }

    /// The same as `uid`.
    public var id: String { uid }

    private var account: Messages.User { state.withLock { $0.account } }

    /// The user's email. Nil: none.
    public var email: String? { account.email.stringOrNil }
    /// True if somebody proved that the email belongs to the user.
    public var isEmailVerified: Bool { account.emailVerified }
    /// The user's display name. Nil: none.
    public var displayName: String? { account.displayName.stringOrNil }
    /// The URL of the user's photo. Nil: none.
    public var photoURL: String? { account.photoURL.stringOrNil }
    /// The user's phone number in E.164 form. Nil: none.
    public var phoneNumber: String? { account.phoneNumber.stringOrNil }
    /// True if this session is the only way into the account: it began anonymously, no provider is linked, and no email
    /// is proved. The server has the same rule, and also counts an unproved email that an admin vouched for, and custom
    /// tokens that entered the account. A user whose last provider was removed is not anonymous, nor is the user of a
    /// custom token.
    public var isAnonymous: Bool {
        state.withLock { state in
            let hasProvedEmail = !state.account.email.isEmpty && state.account.emailVerified
            return state.account.providers.isEmpty && !hasProvedEmail && state.tokens.areAnonymous
        }
    }
    /// "Firebase", as in FirebaseAuth. The linked providers are in `providerData`.
    public var providerID: String { "Firebase" }
    /// The ways to sign in that are linked to the account.
    public var providerData: [UserInfo] { account.providers.map { UserInfo($0) } }
    /// The refresh token of the next refresh. With it anybody can act as the user, so keep it out of logs.
    public var refreshToken: String? { state.withLock { $0.tokens.refreshToken.string } }

    /// When the account was created, and when its user last signed in.
    public var metadata: UserMetadata {
        let account = account
        return UserMetadata(
            creationDate: Timestamp(microseconds: account.createdAtMicros),
            lastSignInDate: Timestamp(microseconds: account.lastSignInAtMicros))
    }

    /// The record of this user, as an `Auth` keeps it.
    var saved: SavedState {
        let deviceToken = backend.device.token
        return state.withLock {
            SavedState(
                account: $0.account, tokens: $0.tokens, attempt: $0.attempt, tenantID: backend.tenantID,
                deviceToken: deviceToken)
        }
    }
}

extension User {
    /// A reference to an `Auth` that has, or had, this user as its current user.
    struct WeakAuth {
        weak var auth: Auth?
    }

    /// Notes that the user is now the current user of `auth`. The user moves to its storage, unless that storage keeps
    /// users of another tenant.
    func addKeeper(_ auth: Auth) {
        state.withLock { state in
            state.keeperCount += 1
            if backend.tenantID == auth.configured.tenantID { state.writer = auth.writer }
            state.observers.removeAll { $0.auth == nil || $0.auth === auth }
            state.observers.append(WeakAuth(auth: auth))
        }
    }

    /// Notes that the user is not the current user of `auth` any more.
    func removeKeeper(_ auth: Auth) {
        state.withLock { state in
            state.keeperCount -= 1
            if state.writer === auth.writer { state.writer = nil }
        }
    }

    /// Whether `writer` has the user in its storage. A user who is in no storage comes into this one.
    func isWritten(by writer: StorageWriter) -> Bool {
        state.withLock { state in
            if state.writer == nil { state.writer = writer }
            return state.writer === writer
        }
    }

    var observers: [Auth] { state.withLock { $0.observers.compactMap(\.auth) } }

    /// Applies an answer, and tells the `Auth` that have this user as their current user. `asked` is a moment before
    /// the call.
    func apply(_ answer: Answer, asked: Moment, cause: TokenRefreshCause) throws(AuthError) {
        let tokens: TokenSet? =
            if let pair = answer.tokens { try TokenSet(pair, asked: asked) } else { nil }
        state.withLock { $0.answerCount += 1 }
        changed(answer.account, tokens.map { ($0, cause) })
    }

    /// Replaces the user's properties and, with `renewed`, its tokens, and tells observers.
    func changed(_ account: Messages.User, _ renewed: (tokens: TokenSet, cause: TokenRefreshCause)?) {
        let (isSame, isNews) = state.withLock { state in
            let isNews = !state.account.looksLike(account)
            let isSame = state.account == account
            state.account = account
            guard let renewed else { return (isSame, isNews) }
            state.tokens = renewed.tokens
            state.attempt = nil
            return (false, isNews)
        }
        guard !isSame else { return }
        let news: IDTokenEvent.Change? =
            if let renewed { .tokenRefreshed(renewed.cause) } else if isNews { .profileChanged } else { nil }
        for auth in observers { auth.userChanged(self, news) }
    }

    /// Marks the user as over: the server accepts none of its tokens any more.
    func end(_ error: AuthError?) {
        state.withLock { $0.isOver = true }
        for auth in observers { auth.userEnded(self, error) }
    }
}

extension Messages.User {
    /// Whether an application sees no difference between two users. The time of the last visit does not count.
    fileprivate func looksLike(_ other: Messages.User) -> Bool {
        email == other.email && emailVerified == other.emailVerified && displayName == other.displayName
            && photoURL == other.photoURL && phoneNumber == other.phoneNumber && providers == other.providers
            && customClaimsJSON == other.customClaimsJSON && secondFactors == other.secondFactors
            && recoveryCodeCount == other.recoveryCodeCount
    }
}

extension User: CustomStringConvertible {
    /// The uid, for logs.
    public var description: String { "User(\(uid))" }
}

extension User {
    convenience init(_ saved: SavedState, backend: Backend) {
        let tokens = TokenSet(
            idToken: saved.idToken, refreshToken: saved.refreshToken, lifetime: saved.lifetime,
            askedAt: saved.askedAt, now: backend.clock.moment())
        self.init(saved.account, tokens, attempt: saved.attempt, backend: backend)
    }
}
