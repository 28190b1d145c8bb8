public import Base
public import Messages

/// A user's change of its own account. It is checked when it is made; applying it is pure.
public struct ProfileChange: Sendable {
    public var displayName: Text?
    public var photoURL: Text?
    public var newPasswordHash: Text?
    public var newEmail: Email?

    /// Why the change ends the other sessions: somebody else who is signed in may be the reason for the change.
    public var endsOtherSessions: SessionEnd? {
        if newPasswordHash != nil { return .passwordChanged }
        return newEmail != nil ? .signedOut : nil
    }

    /// The names of the changed fields, for the event log.
    public var fieldNames: Text {
        let names: [(String, Bool)] = [
            ("email", newEmail != nil), ("password", newPasswordHash != nil), ("display_name", displayName != nil),
            ("photo_url", photoURL != nil),
        ]
        return Text(names.filter(\.1).map(\.0).joined(separator: ","))
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
            account.setUnprovedEmail(newEmail)
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

/// An admin's change of an account: each non-nil value is set, an empty text removes.
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
    /// Providers to unlink before anything else changes, so that another identity of a provider can take the place of
    /// one.
    public var unlinkedProviderIDs: [Text] = []
    public var linkedProviders: [ProviderInfo] = []
    public var revokesTokens = false

    public init() {}

    /// The further effects of a change.
    public struct Effect: Sendable {
        /// Ends every session with this reason, and all older tokens.
        public var end: SessionEnd?
        /// Voids every code that was sent for the account, also the ways back to earlier emails: those are for changes
        /// that were made in the user's name.
        public var voidsCodes = false
        public var kind: EventKind
        public var detail: Text
        /// Further events, of a change that does several things.
        public var others: [(kind: EventKind, detail: Text)] = []
    }

    public func apply(to account: inout Account, now: Timestamp) throws(Failure) -> Effect {
        let old = account
        for providerID in unlinkedProviderIDs { try account.unlink(providerID) }
        if let email {
            account.user.email = email?.address ?? .empty
            if email?.canonical != Email(stored: old.user.email)?.canonical { account.user.emailVerified = false }
        }
        if let emailVerified { account.user.emailVerified = emailVerified && !account.user.email.isEmpty }
        account.noteEmailSetByAdmin(over: old)
        if let displayName { account.user.displayName = displayName }
        if let photoURL { account.user.photoURL = photoURL }
        if let phoneNumber { account.user.phoneNumber = phoneNumber }
        if let disabled { account.user.disabled = disabled }
        if let customClaims { account.user.customClaimsJSON = customClaims }
        if let passwordHash {
            account.passwordHash = passwordHash
            account.passwordUpdatedAt = now
        }
        for provider in linkedProviders { try account.link(provider) }
        account.deriveProviders()
        return effect(old: old, new: account)
    }

    private func effect(old: Account, new: Account) -> Effect {
        let isEmailChange = new.hasOtherEmail(than: old)
        let isDisabling = new.user.disabled && !old.user.disabled
        var events = events
        let first = events.removeFirst()
        var end: SessionEnd?
        if passwordHash != nil {
            end = .passwordChanged
        } else if revokesTokens || isDisabling || isEmailChange {
            end = .admin
        }
        return Effect(end: end, voidsCodes: isEmailChange, kind: first.kind, detail: first.detail, others: events)
    }

    /// The events of the change: one for the account's own fields, one for each way to sign in that is added or
    /// removed, one for revoked tokens. There is always at least one.
    private var events: [(kind: EventKind, detail: Text)] {
        let names: [(String, Bool)] = [
            ("email", email != nil), ("email_verified", emailVerified != nil), ("password", passwordHash != nil),
            ("display_name", displayName != nil), ("photo_url", photoURL != nil),
            ("phone_number", phoneNumber != nil), ("disabled", disabled != nil), ("custom_claims", customClaims != nil),
        ]
        let detail = Text(names.filter(\.1).map(\.0).joined(separator: ","))
        var events: [(kind: EventKind, detail: Text)] = []
        if !detail.isEmpty { events.append((passwordHash == nil ? .userUpdated : .passwordChanged, detail)) }
        events += unlinkedProviderIDs.map { (.providerUnlinked, $0) }
        events += linkedProviders.map { (.providerLinked, $0.providerID) }
        if revokesTokens { events.append((.tokensRevoked, .empty)) }
        return events.isEmpty ? [(.userUpdated, .empty)] : events
    }
}

extension Account {
    public func hasOtherEmail(than other: Account) -> Bool {
        Email(stored: user.email) != Email(stored: other.user.email)
    }
}
