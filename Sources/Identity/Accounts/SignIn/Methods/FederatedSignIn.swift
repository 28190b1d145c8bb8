public import Base
public import Messages
public import Rules
public import Store

/// Signing in with the statement of an identity provider, or with an earlier one (a pending token).
///
/// Refusals, in order: INVALID_DISPLAY_NAME, to link CREDENTIAL_TOO_OLD_LOGIN_AGAIN, MISSING_CREDENTIAL,
/// OPERATION_NOT_ALLOWED, INVALID_PENDING_TOKEN and the refusals of `IdentityProviders.prove`,
/// TOO_MANY_ATTEMPTS_TRY_LATER, then those of `LinkDecision`.
public struct FederatedSignIn: AccountChoosingMethod, LinkingMethod, ReauthenticatingMethod {
    public static let name = SignInMethodName.federatedSignIn
    public static let methodSwitch = MethodSwitch.always

    private let credential: IdpCredential?
    private let providers: IdentityProviders
    private let pendingCredentials: PendingCredentials

    public init(_ credential: IdpCredential?, providers: IdentityProviders, pendingCredentials: PendingCredentials) {
        self.credential = credential
        self.providers = providers
        self.pendingCredentials = pendingCredentials
    }

    /// Each provider has its own switch, which `prove` checks.
    public func checkOpen(_ settings: TenantSettings) {}

    public func read(_ attempt: SignInAttempt) throws -> SignInReading<IdpCredential?> {
        SignInReading(credential, device: try attempt.device())
    }

    public func throttle(_ credential: IdpCredential?, _ attempt: SignInAttempt) -> SignInThrottle { .unguessable }

    public func prove(_ credential: IdpCredential?, _ attempt: SignInAttempt) async throws -> FederatedIdentity {
        guard let credential, let kind = credential.credential else {
            throw Failure.invalid(.missingCredential, field: "credential", "is required")
        }
        let now = attempt.resources.clock.now()
        if case .pendingToken(let token) = kind {
            let text = token.withBytes { Text(validating: [UInt8]($0)) } ?? .empty
            let identity = try pendingCredentials.identity(in: text, tenantID: attempt.tenantID, now: now)
            return try providers.stillProved(identity, tenantID: attempt.tenantID)
        }
        return try await providers.prove(
            credential, settings: attempt.settings, now: now, deadline: attempt.deadline,
            source: attempt.request.origin.source(attempt.address))
    }

    /// A provider that is not trusted for the email may let its users claim any email. An identity that has an account
    /// is signed in to it whatever the email is, and the signed-in user's own email is no question.
    public func unprovedEmail(in proof: FederatedIdentity, _ attempt: SignInAttempt) throws -> Email? {
        guard !proof.isEmailTrusted, let email = Email(stored: proof.email) else { return nil }
        switch attempt.purpose {
        case .signIn:
            let name = IdentityName(proof.entry)
            let owner = try attempt.resources.store.read { try $0.owner(of: name, tenantID: attempt.tenantID) }
            return owner == nil ? email : nil
        case .link: return Email(stored: attempt.user?.account.user.email ?? .empty) == email ? nil : email
        case .reauthenticate: return nil
        }
    }

    /// A provider takes an authorization code only once. So the identity comes back as a pending token.
    public func refused(
        _ failure: Failure, after proof: FederatedIdentity, of credential: IdpCredential?, _ attempt: SignInAttempt
    ) throws -> Failure {
        guard case .authorizationCode? = credential?.credential else { return failure }
        let now = attempt.resources.clock.now()
        return failure.with("pending_token", try pendingToken(for: proof, attempt.tenantID, now: now))
    }

    public func choose(
        _ proof: FederatedIdentity, known: Account?, settings: TenantSettings, now: Timestamp,
        in transaction: borrowing ReadTransaction
    ) throws -> LinkDecision {
        let (owner, emailOwner) = try transaction.accounts(of: proof, tenantID: settings.tenantID, known: known)
        let decision = try transaction.decision(on: proof, owner: owner, emailOwner: emailOwner, now: now)
        guard case .needsLinking(let uid) = decision else { return decision }
        throw try needsLinking(proof, account: uid, settings: settings, now: now, in: transaction)
    }

    public func effect(
        _ proof: FederatedIdentity, _ choice: LinkDecision, on account: Account?, _ moment: SignInMoment
    ) throws -> AccountEffect {
        guard var changed = account else {
            let key = moment.key
            return AccountEffect(.made(from: proof, tenantID: key.tenant, uid: key.uid, now: moment.now))
        }
        switch choice {
        case .signIn:
            changed.renew(proof)
            return AccountEffect(changed)
        case .link:
            changed.adopt(proof)
            return AccountEffect(changed, kind: .providerLinked, detail: proof.providerID)
        case .takeOver:
            let removed = changed.keepOnlyProved(by: proof)
            return AccountEffect(changed, kind: .credentialsRemoved, detail: removed, endsSessions: .signedOut)
        case .create, .createReleasing, .needsLinking: throw AccountMoved()
        }
    }

    public func decide(
        _ proof: FederatedIdentity, _ choice: LinkDecision, on account: Account?, _ moment: SignInMoment,
        in transaction: borrowing WriteTransaction
    ) throws -> AccountEffect {
        let key = moment.key
        try transaction.reading.requireStillProved(proof, tenantID: key.tenant)
        let decided = try effect(proof, choice, on: account, moment)
        try transaction.useProof(of: proof, tenantID: key.tenant)
        switch choice {
        case .createReleasing:
            try transaction.releaseUnproved(
                proof.email, for: key.uid, tenantID: key.tenant, origin: moment.origin, now: moment.now)
            return decided
        case .takeOver:
            guard let account else { return decided }
            return decided.takingBack(after: try transaction.reading.proofOfUnprovedEmail(account, now: moment.now))
        case .signIn, .create, .link, .needsLinking: return decided
        }
    }

    public func refusedEndUser(_ proof: FederatedIdentity) -> RefusedEndUser {
        RefusedEndUser(email: Email(stored: proof.email))
    }

    public func decide(
        _ proof: FederatedIdentity, linkingTo account: Account, _ moment: SignInMoment,
        in transaction: borrowing WriteTransaction
    ) throws -> AccountEffect {
        try transaction.reading.requireStillProved(proof, tenantID: moment.key.tenant)
        let (owner, emailOwner) = try transaction.reading.accounts(
            of: proof, tenantID: moment.key.tenant, known: account)
        do throws(Failure) {
            _ = try LinkDecision.link(proof, to: account, owner: owner, emailOwner: emailOwner)
        } catch {
            guard error.is(.credentialAlreadyInUse) else { throw error }
            throw error.with("pending_token", try pendingToken(for: proof, moment.key.tenant, now: moment.now))
        }
        try transaction.useProof(of: proof, tenantID: moment.key.tenant)
        var linked = account
        linked.adopt(proof)
        return AccountEffect(linked, kind: .providerLinked, detail: proof.providerID)
    }

    public func checkProof(
        _ proof: FederatedIdentity, of account: Account, _ moment: SignInMoment,
        in transaction: borrowing WriteTransaction
    ) throws -> Account {
        try transaction.reading.requireStillProved(proof, tenantID: moment.key.tenant)
        let owner = try transaction.reading.accounts(of: proof, tenantID: moment.key.tenant).owner
        guard owner?.user.uid == account.user.uid else { throw Failure.userMismatch }
        try transaction.useProof(of: proof, tenantID: moment.key.tenant)
        return account
    }

    private func pendingToken(for identity: FederatedIdentity, _ tenantID: Text, now: Timestamp) throws -> String {
        try pendingCredentials.token(for: identity, tenantID: tenantID, now: now).string
    }

    /// The failure that sends the user to the account it has. The account's sign-in methods are named only where the
    /// tenant lets anybody ask for them.
    private func needsLinking(
        _ identity: FederatedIdentity, account uid: Text, settings: TenantSettings, now: Timestamp,
        in transaction: borrowing ReadTransaction
    ) throws -> Failure {
        var metadata = [
            Failure.Entry("email", identity.email.string),
            Failure.Entry("pending_token", try pendingToken(for: identity, settings.tenantID, now: now)),
        ]
        if !settings.hasEmailPrivacy, let account = try transaction.account(UserKey(settings.tenantID, uid)) {
            let methods = account.signInMethods.map(\.string).joined(separator: ",")
            metadata.append(Failure.Entry("sign_in_methods", methods))
        }
        return Failure(
            .accountExistsWithDifferentCredential,
            "An account has this email already; sign in to it the usual way, then link with the pending token.",
            metadata: metadata)
    }
}

extension FederatedIdentity: SignInProof {
    public var start: SessionStart { SessionStart(providerID) }
}

extension LinkDecision: AccountChoice {
    public var uid: Text? {
        switch self {
        case .signIn(let uid), .link(let uid), .takeOver(let uid), .needsLinking(let uid): uid
        case .create, .createReleasing: nil
        }
    }
}
