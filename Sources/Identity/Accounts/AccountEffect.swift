public import Base
public import Messages
public import Rules

/// The effect of a proved credential on an account. It is decided inside the write transaction, from the records that
/// are committed then.
public struct AccountEffect: Sendable {
    public var account: Account
    public var kind: EventKind
    public var detail: Text
    /// Ends the account's sessions for this reason, and refuses every older token.
    public var endsSessions: SessionEnd?
    /// The proof of the account's email, if it takes the account back. The secrets and codes that are void then are
    /// removed when the effect is written, not before: a sign-in that waits for a second factor may never be finished.
    private(set) var emailProof: ProofOfUnprovedEmail?

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
    /// The detail of the event of a user whom a tenant's hook disabled.
    static let disabledByHook: Text = "disabled by hook"

    /// This effect by a person who proved the account's email, which takes the account back.
    func takingBack(after proof: ProofOfUnprovedEmail?) -> AccountEffect {
        var effect = self
        effect.account.takeBack(after: proof)
        effect.emailProof = proof
        return effect
    }

    /// This effect with the answer of the tenant's hooks applied to the account. An account that the hooks disable
    /// loses its sessions.
    func changed(by hooks: HookAnswer) -> AccountEffect {
        var effect = self
        hooks.apply(to: &effect.account)
        if hooks.isDisabled { effect.endsSessions = .admin }
        return effect
    }

    /// Why the older refresh tokens of the session end when the session goes on. Nil for a change that adds a way to
    /// sign in: the holder of an older token could have made the same change, and a second browser tab may still
    /// present such a token.
    ///
    /// A reauthentication ends older tokens too: after it the session has a recent login, and may change the password.
    var endsOlderTokens: SessionEnd? { endsSessions ?? (kind == .reauthenticated ? .signedOut : nil) }

    /// Why the session in which the change is made goes on with new tokens.
    var refreshCause: TokenRefreshCause {
        switch kind {
        case .passwordChanged: .passwordChanged
        case .emailChanged: .emailChanged
        case .reauthenticated: .reauthenticated
        default: .providersChanged
        }
    }
}
