public import Base
public import Messages
public import Rules
import Store

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
    /// The names of what the tenant's hooks changed in the account (`HookAnswer.changes`). They are an event of their
    /// own.
    var hookChanges = Text.empty

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
        let changes = HookAnswer.changes(from: account, to: effect.account)
        // A sign-up may have applied its hooks' answer before.
        if !changes.isEmpty { effect.hookChanges = changes }
        if hooks.isDisabled { effect.endsSessions = .admin }
        return effect
    }

    /// Whether the account comes back to the owner of a former email, without the second factors since.
    private var takesBack: Bool {
        if case .takesOver(.some)? = emailProof { true } else { false }
    }

    /// The detail of the effect's event. It names the recovery codes as well if `current` has some, and loses them
    /// because the account is taken back.
    func eventDetail(over current: Account) -> Text {
        guard takesBack, current.user.recoveryCodeCount > 0 else { return detail }
        let separator = detail.isEmpty ? [] : [UInt8(ascii: ",")]
        return Text(unchecked: detail.bytes + separator + [UInt8]("recovery_codes".utf8))
    }

    /// The second factors of `current` that it loses because the account is taken back.
    func factorsTakenBack(from current: Account) -> [SecondFactor] {
        guard takesBack else { return [] }
        return current.user.secondFactors.filter { factor in
            !account.user.secondFactors.contains { $0.factorID == factor.factorID }
        }
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

extension WriteTransaction {
    /// The event of a user whom a hook disabled together with another change, which has an event of its own.
    func noteDisabledByHook(_ key: UserKey, origin: Origin, now: Timestamp) throws {
        try appendEvent(
            .userUpdated, tenantID: key.tenant, uid: key.uid, origin: origin, detail: AccountEffect.disabledByHook,
            now: now)
    }

    /// The event of what hooks changed in an account, beside the event of the sign-in; none if they changed nothing.
    func noteHookChanges(_ effect: AccountEffect, origin: Origin, now: Timestamp) throws {
        guard !effect.hookChanges.isEmpty else { return }
        let key = effect.account.key
        let detail = Text(unchecked: [UInt8]("by hook: ".utf8) + effect.hookChanges.bytes)
        try appendEvent(
            .userUpdated, tenantID: key.tenant, uid: key.uid, origin: origin, detail: detail, now: now)
    }

    /// The events of the second factors that `current` loses because somebody proved its email (`Account.takeBack`).
    func noteFactorsTakenBack(
        from current: Account, by effect: AccountEffect, origin: Origin, now: Timestamp
    ) throws {
        let key = current.key
        for factor in effect.factorsTakenBack(from: current) {
            try appendEvent(
                .secondFactorRemoved, tenantID: key.tenant, uid: key.uid, origin: origin,
                detail: factor.eventDetail, now: now)
        }
    }
}
