public import Base
public import Messages

/// What a user changes of its own account. Checked when made; applying is pure.
public struct ProfileChange: Sendable {
    public var displayName: Text?
    public var photoURL: Text?
    public var newPasswordHash: Text?
    public var newEmail: Email?

    /// Whoever else is signed in may be the reason for the change.
    public var endsOtherSessions: SessionEnd? {
        if newPasswordHash != nil { return .passwordChanged }
        return newEmail != nil ? .signedOut : nil
    }

    public init(displayName: Text? = nil, photoURL: Text? = nil, newPasswordHash: Text? = nil) {
        self.displayName = displayName
        self.photoURL = photoURL
        self.newPasswordHash = newPasswordHash
    }

    /// OPERATION_NOT_ALLOWED for a password on an account without an email: it could never be used.
    public func apply(to account: inout Account, now: Timestamp) throws(Failure) {
        if let displayName { account.user.displayName = displayName }
        if let photoURL { account.user.photoURL = photoURL }
        if let newEmail, newEmail != Email(stored: account.user.email) {
            account.user.email = newEmail.address
            account.user.emailVerified = false
        }
        if let newPasswordHash {
            guard !account.user.email.isEmpty else {
                throw Failure(
                    .operationNotAllowed,
                    "An account without an email address cannot have a password; add an email first.")
            }
            account.passwordHash = newPasswordHash
            account.passwordUpdatedAt = now
        }
        account.deriveProviders()
    }
}

/// What an admin changes of an account: each non-nil value is set, an empty text removes.
public struct AdminChange: Sendable {
    public var email: Email??
    public var emailVerified: Bool?
    /// The new hash; empty removes the password.
    public var passwordHash: Text?
    public var displayName: Text?
    public var photoURL: Text?
    public var phoneNumber: Text?
    public var disabled: Bool?
    public var customClaims: [UInt8]?
    public var linkedProvider: ProviderInfo?
    public var unlinkedProviderID: Text?
    public var revokesTokens = false

    public init() {}

    /// What a change brings with it.
    public struct Effect: Sendable {
        /// Ends every session with this reason, and all older tokens.
        public var end: SessionEnd?
        /// Voids every code that was sent on the account's behalf, the ways back to earlier emails included: those are
        /// for changes its user is said to have made.
        public var voidsCodes = false
        public var kind: EventKind
        public var detail: Text
    }

    public func apply(to account: inout Account, now: Timestamp) throws(Failure) -> Effect {
        let old = account
        if let email {
            account.user.email = email?.address ?? .empty
            if email?.canonical != Email(stored: old.user.email)?.canonical { account.user.emailVerified = false }
        }
        if let emailVerified { account.user.emailVerified = emailVerified && !account.user.email.isEmpty }
        if let displayName { account.user.displayName = displayName }
        if let photoURL { account.user.photoURL = photoURL }
        if let phoneNumber { account.user.phoneNumber = phoneNumber }
        if let disabled { account.user.disabled = disabled }
        if let customClaims { account.user.customClaimsJSON = customClaims }
        if let passwordHash {
            account.passwordHash = passwordHash
            account.passwordUpdatedAt = now
        }
        if let linkedProvider { try account.link(linkedProvider) }
        account.deriveProviders()
        if let unlinkedProviderID { try account.unlink(unlinkedProviderID) }
        return effect(old: old, new: account)
    }

    private func effect(old: Account, new: Account) -> Effect {
        let names: [(String, Bool)] = [
            ("email", email != nil), ("email_verified", emailVerified != nil), ("password", passwordHash != nil),
            ("display_name", displayName != nil), ("photo_url", photoURL != nil),
            ("phone_number", phoneNumber != nil), ("disabled", disabled != nil), ("custom_claims", customClaims != nil),
        ]
        let detail = Text(names.filter(\.1).map(\.0).joined(separator: ","))
        if let linkedProvider { return Effect(end: nil, kind: .providerLinked, detail: linkedProvider.providerID) }
        if let unlinkedProviderID { return Effect(end: nil, kind: .providerUnlinked, detail: unlinkedProviderID) }
        let isEmailChange = new.hasOtherEmail(than: old)
        if passwordHash != nil {
            return Effect(end: .passwordChanged, voidsCodes: isEmailChange, kind: .passwordChanged, detail: detail)
        }
        if revokesTokens { return Effect(end: .admin, kind: .tokensRevoked, detail: detail) }
        let isDisabling = new.user.disabled && !old.user.disabled
        return Effect(
            end: isDisabling || isEmailChange ? .admin : nil, voidsCodes: isEmailChange, kind: .userUpdated,
            detail: detail)
    }
}

extension Account {
    public func hasOtherEmail(than other: Account) -> Bool {
        Email(stored: user.email) != Email(stored: other.user.email)
    }
}
