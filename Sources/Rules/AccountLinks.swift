public import Base
public import Messages

// Adding ways to sign in to an account, and removing them. Pure.

extension Account {
    /// Whether the identity proves this account's email, which nobody proved before.
    func isUnprovedOwner(of identity: FederatedIdentity) -> Bool {
        guard identity.isEmailTrusted, !user.emailVerified, let own = Email(stored: user.email) else { return false }
        return own == Email(stored: identity.email)
    }

    /// The new account of an identity that no account has.
    public static func made(
        from identity: FederatedIdentity, tenantID: Text, uid: Text, now: Timestamp
    ) -> Account {
        var account = Account.new(tenantID: tenantID, uid: uid, now: now)
        account.adopt(identity)
        return account
    }

    /// A new account without a way to sign in.
    public static func new(tenantID: Text, uid: Text, now: Timestamp) -> Account {
        var account = Account(user: User(tenantID: tenantID, uid: uid))
        account.user.createdAtMicros = now.microseconds
        account.user.lastSignInAtMicros = now.microseconds
        account.user.tokensValidAfterMicros = now.microseconds
        return account
    }

    /// Renews the entry of an identity of the account with what the provider says now. The account's email stays: the
    /// provider's may be another account's by now.
    public mutating func renew(_ identity: FederatedIdentity) {
        setProvider(identity)
        if user.displayName.isEmpty { user.displayName = identity.displayName }
        if user.photoURL.isEmpty { user.photoURL = identity.photoURL }
        deriveProviders()
    }

    /// Joins the identity: its entry is renewed or added, empty profile properties are filled, filled ones stay.
    public mutating func adopt(_ identity: FederatedIdentity) {
        renew(identity)
        if let email = Email(stored: identity.email) {
            if user.email.isEmpty { setUnprovedEmail(email) }
            if identity.isEmailTrusted, Email(stored: user.email) == email { user.emailVerified = true }
        }
        deriveProviders()
    }

    /// Removes everything of the account that was not proved just now; the uid and what admins set stay.
    ///
    /// `identity` proved the email; nil when a code that was sent to the email proved it. Returns the names of the ways
    /// to sign in that were removed, between commas.
    public mutating func keepOnlyProved(by identity: FederatedIdentity?) -> Text {
        let kept = identity.map { IdentityName($0.entry) }
        let removed = user.providers.filter { entry in
            let name = IdentityName(entry)
            return name != kept && name != kept?.named(.empty)
        }
        var names = removed.map(\.providerID)
        // An account without an email has no entry for its password.
        if hasPassword, !names.contains("password") { names.append("password") }
        user.providers = []
        user.phoneNumber = .empty
        passwordHash = .empty
        signsInByEmailLink = false
        knownAddresses = KnownAddresses()
        user.emailVerified = true
        if let identity {
            user.displayName = identity.displayName
            user.photoURL = identity.photoURL
            setProvider(identity)
        }
        deriveProviders()
        return Text(unchecked: Array(names.map(\.bytes).joined(separator: [UInt8(ascii: ",")])))
    }

    private mutating func setProvider(_ identity: FederatedIdentity) {
        user.providers.removeAll { $0.providerID == identity.providerID }
        user.providers.append(identity.entry)
    }
}

extension Account {
    /// Adds an identity an admin vouches for; nothing else changes. PROVIDER_ALREADY_LINKED, TOO_MANY_PROVIDERS.
    public mutating func link(_ provider: ProviderInfo) throws(Failure) {
        guard !user.providers.contains(where: { $0.providerID == provider.providerID }) else {
            throw .providerAlreadyLinked(provider.providerID)
        }
        guard user.providers.count < Values.providersPerUserMax else {
            throw Failure(
                .tooManyProviders,
                "A user has at most \(Values.providersPerUserMax) ways to sign in; unlink one first.")
        }
        user.providers.append(provider)
    }

    /// The account with an email and a password. PROVIDER_ALREADY_LINKED; INVALID_EMAIL when it has another email: an
    /// email is changed by proving the new one, not by linking.
    public func linkingPassword(_ hash: Text, email: Email, now: Timestamp) throws(Failure) -> Account {
        // An account whose address was rejected may have a password that nobody can sign in with.
        if hasPassword, !user.email.isEmpty { throw .providerAlreadyLinked("password") }
        var account = self
        if user.email.isEmpty {
            account.setUnprovedEmail(email)
        } else {
            try requireOwnEmail(email)
        }
        account.passwordHash = hash
        account.passwordUpdatedAt = now
        account.deriveProviders()
        return account
    }

    /// The account with sign-in by email link, after its address was just proved. INVALID_EMAIL when it has another
    /// email.
    public func linkingEmailLink(_ email: Email) throws(Failure) -> Account {
        var account = self
        if user.email.isEmpty {
            account.user.email = email.address
        } else {
            try requireOwnEmail(email)
        }
        account.user.emailVerified = true
        account.signsInByEmailLink = true
        account.deriveProviders()
        return account
    }

    private func requireOwnEmail(_ email: Email) throws(Failure) {
        guard Email(stored: user.email) == email else {
            throw .invalid(.invalidEmail, field: "email", "is not this account's; change the account's email first")
        }
    }

    /// The account after its user removed a way to sign in. NO_SUCH_PROVIDER, LAST_SIGN_IN_METHOD.
    ///
    /// The last way that the tenant has switched on is removed only if forced, and then only where end users may
    /// delete accounts, because nobody can enter the account again. `enabledProviderIDs`: the account's identity
    /// providers with which users may sign in.
    public func unlinking(
        _ providerID: Text, isForced: Bool, enabledProviderIDs: [Text], settings: TenantSettings
    ) throws -> Account {
        var account = self
        try account.unlink(providerID)
        let couldEnter = hasOpenWayIn(enabledProviderIDs, settings)
        let canEnter = account.hasOpenWayIn(enabledProviderIDs, settings)
        guard account.user.providers.isEmpty || (couldEnter && !canEnter) else { return account }
        guard isForced else { throw Failure.lastSignInMethod }
        try SelfService.checkDeletion(settings)
        return account
    }

    /// Whether one of the account's providers is a way to sign in now. A link can be sent to each account that has the
    /// provider "password".
    private func hasOpenWayIn(_ enabledProviderIDs: [Text], _ settings: TenantSettings) -> Bool {
        user.providers.contains { provider in
            switch provider.providerID {
            case "password": (hasPassword && settings.allows(.password)) || settings.allows(.emailLink)
            case "phone": settings.allows(.phone)
            default: enabledProviderIDs.contains(provider.providerID)
            }
        }
    }

    /// Removes a way to sign in. NO_SUCH_PROVIDER. "password" means the password and sign-in by link; the email stays
    /// with the account, so that nobody else can get it this way.
    public mutating func unlink(_ providerID: Text) throws(Failure) {
        guard user.providers.contains(where: { $0.providerID == providerID }) else {
            throw Failure(.noSuchProvider, "This account has no identity of \(providerID).")
        }
        switch providerID {
        case "password":
            passwordHash = .empty
            signsInByEmailLink = false
        case "phone": user.phoneNumber = .empty
        default: user.providers.removeAll { $0.providerID == providerID }
        }
        deriveProviders()
    }
}

extension Failure {
    static let lastSignInMethod = Failure(
        .lastSignInMethod,
        "This is the only way into the account; link another one first, or send `force` to lose access.")

    public static func providerAlreadyLinked(_ providerID: Text) -> Failure {
        Failure(
            .providerAlreadyLinked,
            "This account has an identity of \(providerID) already; unlink it first to link another.")
    }

    /// Does not name the other user; `detail` says what the credential collides with.
    public static func credentialInUse(detail: Reason) -> Failure {
        Failure(
            .credentialAlreadyInUse,
            "The credential belongs to another account; sign in to that one with it, then merge the two.",
            metadata: [Entry("detail", detail.name)])
    }
}
