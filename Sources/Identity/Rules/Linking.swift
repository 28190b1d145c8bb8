public import Base
import Messages

/// What a proved identity of a provider means for the accounts of a tenant. Pure: the accounts come in, the decision
/// comes out; `LinkDecision.apply` makes the changed account.
///
/// The rule that keeps accounts safe: an email only joins an identity to an account when both sides proved it. The
/// account proved it when its email is verified, the provider when it is trusted for that email (docs/linking.md).
public enum LinkDecision: Sendable, Equatable {
    /// The identity has an account, or nobody knows its email: no account is joined to another.
    case signIn(uid: Text)
    case create
    /// The account's email is verified and the provider is trusted for it: both are the same person.
    case link(uid: Text)
    /// The account's email was never proved and this identity proves it: everything unproved goes.
    case takeOver(uid: Text)
    /// The email has an account and the provider is not trusted for it: sign in there first, then link.
    case needsLinking(uid: Text)

    /// Decides a sign-in without a user. `owner` has this identity, `emailOwner` has its email as primary one; the
    /// same account may be both. USER_DISABLED before anything else of an account that would be changed or entered.
    public static func signIn(
        _ identity: FederatedIdentity, owner: Account?, emailOwner: Account?
    ) throws(Failure) -> LinkDecision {
        if let owner {
            if owner.user.disabled { throw .userDisabled }
            return owner.isUnprovedOwner(of: identity) ? .takeOver(uid: owner.user.uid) : .signIn(uid: owner.user.uid)
        }
        guard let emailOwner else { return .create }
        let uid = emailOwner.user.uid
        guard identity.isEmailTrusted else { return .needsLinking(uid: uid) }
        if emailOwner.user.disabled { throw .userDisabled }
        return emailOwner.user.emailVerified ? .link(uid: uid) : .takeOver(uid: uid)
    }

    /// Decides linking to `user`, who is signed in. PROVIDER_ALREADY_LINKED, CREDENTIAL_ALREADY_IN_USE.
    public static func link(
        _ identity: FederatedIdentity, to user: Account, owner: Account?, emailOwner: Account?
    ) throws(Failure) -> LinkDecision {
        let uid = user.user.uid
        if let owner, owner.user.uid != uid { throw .credentialInUse(detail: "FEDERATED_USER_ID_ALREADY_LINKED") }
        if user.user.providers.contains(where: { $0.providerID == identity.providerID }) {
            throw .providerAlreadyLinked(identity.providerID)
        }
        if let emailOwner, emailOwner.user.uid != uid { throw .credentialInUse(detail: "EMAIL_EXISTS") }
        return .link(uid: uid)
    }
}

extension Account {
    /// Whether the identity proves this account's email, which nobody proved before.
    fileprivate func isUnprovedOwner(of identity: FederatedIdentity) -> Bool {
        guard identity.isEmailTrusted, !user.emailVerified, let own = Email(user.email) else { return false }
        return own == Email(identity.email)
    }

    /// The account that an identity nobody knows comes to own.
    static func made(
        from identity: FederatedIdentity, tenantID: Text, uid: Text, now: Timestamp
    ) -> Account {
        var account = Account.new(tenantID: tenantID, uid: uid, now: now)
        account.adopt(identity)
        return account
    }

    /// An account without a way to sign in, that begins now.
    static func new(tenantID: Text, uid: Text, now: Timestamp) -> Account {
        var account = Account(user: User(tenantID: tenantID, uid: uid))
        account.user.createdAtMicros = now.microseconds
        account.user.lastSignInAtMicros = now.microseconds
        account.user.tokensValidAfterMicros = now.microseconds
        return account
    }

    /// Joins the identity: its entry is renewed or added, empty profile properties are filled, full ones stay.
    mutating func adopt(_ identity: FederatedIdentity) {
        setProvider(identity)
        if user.displayName.isEmpty { user.displayName = identity.displayName }
        if user.photoURL.isEmpty { user.photoURL = identity.photoURL }
        if let email = Email(identity.email) {
            if user.email.isEmpty { user.email = email.address }
            if identity.isEmailTrusted, Email(user.email) == email { user.emailVerified = true }
        }
        deriveProviders()
    }

    /// Leaves nothing of the account's that was not proved just now; the uid and what admins set stay.
    ///
    /// `identity` is what proved the email; nil when a code sent to it did.
    mutating func keepOnlyProved(by identity: FederatedIdentity?) -> Text {
        let removed = user.providers.filter { $0.providerID != identity?.providerID || $0.rawID != identity?.rawID }
        user.providers = []
        user.phoneNumber = .empty
        passwordHash = .empty
        signsInByEmailLink = false
        user.emailVerified = true
        if let identity {
            user.displayName = identity.displayName
            user.photoURL = identity.photoURL
            setProvider(identity)
        }
        deriveProviders()
        return Text(unchecked: Array(removed.map(\.providerID.bytes).joined(separator: [UInt8(ascii: ",")])))
    }

    private mutating func setProvider(_ identity: FederatedIdentity) {
        user.providers.removeAll { $0.providerID == identity.providerID }
        user.providers.append(
            ProviderInfo(
                providerID: identity.providerID, rawID: identity.rawID, email: identity.email,
                displayName: identity.displayName, photoURL: identity.photoURL))
    }
}

extension Failure {
    static func providerAlreadyLinked(_ providerID: Text) -> Failure {
        Failure(
            .alreadyExists, "PROVIDER_ALREADY_LINKED",
            "This account has an identity of \(providerID) already; unlink it first to link another.")
    }

    /// Names no foreign user; `detail` says what the credential collides with.
    static func credentialInUse(detail: String) -> Failure {
        Failure(
            .alreadyExists, "CREDENTIAL_ALREADY_IN_USE",
            "The credential belongs to another account; sign in to that one with it, then merge the two.",
            metadata: [Entry("detail", detail)])
    }
}
