public import Base
public import Messages

/// The state of a session and its user at one moment, as a watcher of the session sees it.
public struct AuthState: Sendable, Equatable {
    /// Nil: the account is gone.
    public var user: User?
    /// Nil: the session was removed.
    public var session: StoredSession?

    public init(user: User?, session: StoredSession?) {
        self.user = user
        self.session = session
    }
}

extension AuthState {
    /// The part of a state that tells what the next state changed. It is small, because every watcher keeps one.
    public struct Mark: Sendable, Equatable {
        fileprivate let account: Int
        fileprivate let counter: UInt64
        fileprivate let lastUsedAtMicros: Int64
    }

    public var mark: Mark {
        var account = user
        // A sign-in elsewhere changes this time, and that is no news of the account.
        account?.lastSignInAtMicros = 0
        return Mark(
            account: account?.encoded().hashValue ?? 0, counter: session?.counter ?? 0,
            lastUsedAtMicros: session?.lastUsedAtMicros ?? 0)
    }
}

/// The change of a session between two looks at it. Pure; the most final change comes first, and ends the watching.
public enum AuthStateStep: Sendable, Equatable {
    case none
    case deleted
    case disabled
    case signedOut(RefreshDecision.RefusedCause)
    case tokenRefreshed(TokenRefreshCause)
    case profileChanged

    public var isLast: Bool {
        switch self {
        case .deleted, .disabled, .signedOut: true
        case .none, .tokenRefreshed, .profileChanged: false
        }
    }

    /// Whether the session has other tokens than before.
    public var hasNewTokens: Bool { if case .tokenRefreshed = self { true } else { false } }

    /// Without an old mark only the end of the session is a step. When both the token and the profile changed, the step
    /// is the refresh, whose message has the user.
    public static func between(
        _ old: AuthState.Mark?, _ new: AuthState, settings: TenantSettings, now: Timestamp
    ) -> AuthStateStep {
        guard let user = new.user else { return .deleted }
        if user.disabled { return .disabled }
        guard let session = new.session else { return .signedOut(.signedOut) }
        if let cause = session.refusedCause(settings: settings, now: now) { return .signedOut(cause) }
        let mark = new.mark
        guard let old, mark != old else { return .none }
        if mark.counter != old.counter || mark.lastUsedAtMicros != old.lastUsedAtMicros {
            return .tokenRefreshed(session.refreshCause)
        }
        return .profileChanged
    }

    /// Nil for `.none`.
    public func message(of state: AuthState, session: Session?) -> SessionsWatchAuthStateResponse? {
        var message = SessionsWatchAuthStateResponse(user: state.user, session: session)
        switch self {
        case .none: return nil
        case .deleted: message.change = .deleted
        case .disabled: message.change = .disabled
        case .signedOut(let cause):
            message.change = .signedOut
            message.endCause = Text(cause.rawValue)
        case .tokenRefreshed(let cause):
            message.change = .tokenRefreshed
            message.refreshCause = cause
        case .profileChanged: message.change = .profileChanged
        }
        return message
    }
}
