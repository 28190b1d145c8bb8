public import Base
public import Messages

/// A user with the data that only the server may see: the value that every account rule works on.
public struct Account: Sendable, Equatable {
    public var user: User
    /// The hash as `PasswordCredential` writes it; empty = no password.
    public var passwordHash: Text
    public var passwordUpdatedAt: Timestamp
    /// Whether the user signs in with links sent to the email.
    public var signsInByEmailLink = false
    /// Whether a back end's custom token came before any email that the user typed: the uid is the back end's name for
    /// its user. It stays true, because the back end may sign tokens for the uid at any time.
    public var signsInByCustomToken = false
    /// When an import made the account; zero for other accounts. The uid may have been another account's before, so
    /// older device tokens do not count, however old the password and the factors are by the import.
    public var importedAt = Timestamp.zero
    /// Whether an admin, an import or a hook gave the account its email, or took the proof from it. This counts only
    /// while the email is unproved: the person who proves it is the account's user then, also if the account has second
    /// factors or ways back to other emails.
    public private(set) var isEmailSetByAdmin = false
    /// Why `user.tokensValidAfterMicros` was moved last; unspecified while it is the time when the account was made.
    public private(set) var tokensRevokedFor = SessionEnd.unspecified
    /// The addresses at which the user need not wait because somebody guesses elsewhere.
    public var knownAddresses = KnownAddresses()

    public init(user: User, passwordHash: Text = .empty, passwordUpdatedAt: Timestamp = .zero) {
        self.user = user
        self.passwordHash = passwordHash
        self.passwordUpdatedAt = passwordUpdatedAt
    }

    public init(_ record: StoredUser) throws(DecodeError) {
        self.user = try User(stored: record.user)
        self.passwordHash = record.passwordHash
        self.passwordUpdatedAt = Timestamp(microseconds: record.passwordUpdatedAtMicros)
        self.signsInByEmailLink = record.emailLinkSignIn
        self.isEmailSetByAdmin = record.emailSetByAdmin
        self.signsInByCustomToken = record.customTokenSignIn
        self.importedAt = Timestamp(microseconds: record.importedAtMicros)
        self.tokensRevokedFor = record.tokensRevokedFor
        self.knownAddresses = KnownAddresses(stored: record.knownAddresses)
    }

    public var record: StoredUser {
        StoredUser(
            user: user.encoded(), passwordHash: passwordHash, passwordUpdatedAtMicros: passwordUpdatedAt.microseconds,
            emailLinkSignIn: signsInByEmailLink, emailSetByAdmin: isEmailSetByAdmin,
            customTokenSignIn: signsInByCustomToken, importedAtMicros: importedAt.microseconds,
            tokensRevokedFor: tokensRevokedFor, knownAddresses: knownAddresses.bytes)
    }

    /// The public user inside a stored record's bytes.
    public static func encodedUser(in record: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        firstField(StoredUser.FieldNumber.user, in: record) ?? UnsafeRawBufferPointer(start: nil, count: 0)
    }

    public var hasPassword: Bool { !passwordHash.isEmpty }

    /// Notes a custom token that entered the account. Where the user typed an email before, the token only hands over a
    /// session, and the account stays that of whoever proves the email (decision 0147).
    public mutating func noteCustomToken() {
        if !hasTypedEmail { signsInByCustomToken = true }
    }

    /// Whether the account's user typed its email: nobody proved the email, and no admin or import vouched for it.
    public var hasTypedEmail: Bool { !user.email.isEmpty && !user.emailVerified && !isEmailSetByAdmin }

    /// Whether the account has no way to sign in again.
    public var hasNoWayIn: Bool {
        user.email.isEmpty && user.phoneNumber.isEmpty && user.providers.isEmpty && passwordHash.isEmpty
            && !signsInByCustomToken
    }

    /// Whether the account has a way to sign in again that is known to be its user's. An email that the user only typed
    /// is not: it may be misspelt or another person's, and nobody but its owner could sign in by it. Without such a
    /// way, a user who began anonymously cannot be asked to log in again.
    ///
    /// Example: an anonymous user who adds an email has no such way, and has one once the email is proved.
    public var hasSureWayIn: Bool {
        !user.providers.isEmpty || signsInByCustomToken || !(user.email.isEmpty || hasTypedEmail)
    }

    /// The ways to sign in after typing the email address, by the names of Identity Toolkit's `signinMethods`. "phone"
    /// is not one of them: a phone number is another identifier.
    public var signInMethodsByEmail: [Text] {
        user.providers.flatMap { provider -> [Text] in
            if provider.isFederated { return [provider.providerID] }
            guard provider.providerID == "password" else { return [] }
            return (hasPassword ? ["password"] : []) + (signsInByEmailLink ? ["emailLink"] : [])
        }
    }

    /// All ways to sign in, the phone number included.
    public var signInMethods: [Text] {
        signInMethodsByEmail + (user.phoneNumber.isEmpty ? [] : [ProviderInfo.phone])
    }

    /// Derives the "password" and "phone" entries from the account; they are never set by hand.
    ///
    /// "password" is there while there are an email and a password or a sign-in by link, as in Firebase; "phone" while
    /// there is a phone number.
    public mutating func deriveProviders() {
        user.providers.removeAll { !$0.isFederated }
        if !user.email.isEmpty && (hasPassword || signsInByEmailLink) {
            user.providers.append(
                ProviderInfo(
                    providerID: "password", rawID: user.email, email: user.email, displayName: user.displayName,
                    photoURL: user.photoURL))
        }
        if !user.phoneNumber.isEmpty {
            user.providers.append(
                ProviderInfo(providerID: "phone", rawID: user.phoneNumber, phoneNumber: user.phoneNumber))
        }
    }

    /// Gives the account an email that its end user has typed and not proved.
    mutating func setUnprovedEmail(_ email: Email) {
        user.email = email.address
        user.emailVerified = false
        isEmailSetByAdmin = false
    }

    /// Gives the account an email that it had before, or none. An admin's word about the present email says nothing
    /// about the former one, which the user may have typed.
    mutating func setFormerEmail(_ email: Text?, isVerified: Bool) {
        user.email = email ?? .empty
        user.emailVerified = email != nil && isVerified
        isEmailSetByAdmin = false
    }

    /// Notes what an admin or an import did about the email. `old`: the account before; nil for a new one. Writing the
    /// same email again, as unproved as it was, does not count: the account's user may have typed it.
    public mutating func noteEmailSetByAdmin(over old: Account?) {
        if let old, !hasOtherEmail(than: old), user.emailVerified == old.user.emailVerified {
            isEmailSetByAdmin = old.isEmailSetByAdmin
        } else {
            isEmailSetByAdmin = !user.email.isEmpty && !user.emailVerified
        }
    }

    /// Refuses every ID token signed until now, for the reason `end`. The time never goes back, even if the clock did.
    public mutating func revokeTokens(_ end: SessionEnd, now: Timestamp) {
        tokensRevokedFor = end
        user.tokensValidAfterMicros = max(now.microseconds, user.tokensValidAfterMicros &+ 1)
    }
}
