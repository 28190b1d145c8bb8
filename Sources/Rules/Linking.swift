public import Base
import Messages

/// The decision on a proved identity of a provider, for the accounts of a tenant. Pure: the accounts come in, the
/// decision comes out; `FederatedSignIn` makes the changed account.
///
/// The rule that keeps accounts safe: an email only joins an identity to an account when both sides proved it. The
/// account proved it when its email is verified, the provider when it is trusted for that email (docs/linking.md).
public enum LinkDecision: Sendable, Equatable {
    /// `signIn`: the identity has an account. `create`: no account has its email. No account is joined to another.
    case signIn(uid: Text)
    case create
    /// Like `create`, and the account that has the email loses it: the email was never proved there, and the account is
    /// another person's (`ProofOfUnprovedEmail.isAnothers`).
    case createReleasing(uid: Text)
    /// The account's email is verified and the provider is trusted for it: both are the same person.
    case link(uid: Text)
    /// The account's email was never proved and this identity proves it: everything unproved is removed.
    case takeOver(uid: Text)
    /// The email has an account and the provider is not trusted for it: sign in there first, then link.
    case needsLinking(uid: Text)

    /// Decides a sign-in without a user. `owner` has this identity, `emailOwner` has its email as primary one; the same
    /// account may be both. For a disabled account that would be changed or entered, USER_DISABLED comes before
    /// anything else.
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

    /// This decision, adjusted if the person who proves the account's email gets the email and not the account.
    public func respecting(_ isAnothers: Bool, owner: Account?) -> LinkDecision {
        guard case .takeOver(let uid) = self, isAnothers else { return self }
        return owner == nil ? .createReleasing(uid: uid) : .signIn(uid: uid)
    }

    /// Decides linking to `user`, who is signed in. PROVIDER_ALREADY_LINKED, CREDENTIAL_ALREADY_IN_USE.
    public static func link(
        _ identity: FederatedIdentity, to user: Account, owner: Account?, emailOwner: Account?
    ) throws(Failure) -> LinkDecision {
        let uid = user.user.uid
        if let owner, owner.user.uid != uid { throw .credentialInUse(detail: .federatedUserIDAlreadyLinked) }
        if user.user.providers.contains(where: { $0.providerID == identity.providerID }) {
            throw .providerAlreadyLinked(identity.providerID)
        }
        if let emailOwner, emailOwner.user.uid != uid { throw .credentialInUse(detail: .emailExists) }
        return .link(uid: uid)
    }
}
