public import Base
public import Messages
public import Rules

/// The effect of a proved credential on an account. It is decided inside the write transaction, over what is committed
/// then.
public struct AccountEffect: Sendable {
    public var account: Account
    public var kind: EventKind
    public var detail: Text
    /// Ends the account's sessions for this reason, and refuses every older token.
    public var endsSessions: SessionEnd?

    public init(
        _ account: Account, kind: EventKind = .signedIn, detail: Text = .empty, endsSessions: SessionEnd? = nil
    ) {
        self.account = account
        self.kind = kind
        self.detail = detail
        self.endsSessions = endsSessions
    }
}

extension AccountEffect {
    /// The same over the account as the tenant's hooks want it. Whom they disable has no session left.
    func changed(by hooks: HookAnswer) -> AccountEffect {
        var effect = self
        hooks.apply(to: &effect.account)
        if hooks.isDisabled { effect.endsSessions = .admin }
        return effect
    }

    /// Why refresh tokens of before end in the session that goes on. Nil for what adds a way to sign in: whoever held
    /// such a token could have come so far anyway, and a second tab may still show it.
    ///
    /// A reauthentication counts as well. The session's login is recent then, and may change the password.
    var endsOlderTokens: SessionEnd? { endsSessions ?? (kind == .reauthenticated ? .signedOut : nil) }

    /// Why the session it is made in goes on with new tokens.
    var refreshCause: TokenRefreshCause {
        switch kind {
        case .passwordChanged: .passwordChanged
        case .emailChanged: .emailChanged
        case .reauthenticated: .reauthenticated
        default: .providersChanged
        }
    }
}
