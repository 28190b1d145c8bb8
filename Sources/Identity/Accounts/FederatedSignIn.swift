public import Base
import Messages
public import Store
import Tokens

/// Signing in and linking with an identity that a provider proved.
///
/// `LinkDecision` decides, twice: first over what is committed, to know whose session it goes through, then inside that
/// session's transaction. When the two differ, because somebody else came first, it begins again.
extension Project {
    public func signIn(
        _ identity: FederatedIdentity, settings: TenantSettings, origin: Origin, deadline: Instant
    ) async throws -> SignedIn {
        return try await startingOverWhenAccountMoved {
            let now = clock.now()
            let seen = try store.read { try $0.decision(on: identity, settings: settings, now: now) }
            if case .needsLinking(let uid) = seen {
                throw try needsLinking(identity, account: uid, settings: settings)
            }
            let uid = seen.uid ?? resources.random.alphanumeric(28)
            return try await users.session(tenantID: settings.tenantID, uid: uid).signIn(
                SessionStart(identity.providerID), settings: settings, origin: origin, deadline: deadline
            ) { transaction, current in
                let decision = try transaction.reading.decision(
                    on: identity, settings: settings, known: current, now: now)
                guard decision == seen else { throw AccountMoved() }
                try transaction.useProof(of: identity, tenantID: settings.tenantID)
                guard let current else {
                    if case .createReleasing = decision {
                        try transaction.releaseUnproved(
                            identity.email, for: uid, tenantID: settings.tenantID, origin: origin, now: now)
                    }
                    return AccountEffect(.made(from: identity, tenantID: settings.tenantID, uid: uid, now: now))
                }
                return try transaction.effect(of: seen, on: current, identity: identity, now: now)
            }
        }
    }

    /// Links the identity to a signed-in user, whose session goes on with new tokens.
    public func link(
        _ identity: FederatedIdentity, to verified: VerifiedUser, origin: Origin, deadline: Instant
    ) async throws -> SignedIn {
        let settings = verified.settings
        let user = verified.account.user
        // An upgraded anonymous user signs in with this identity from now on.
        let start = verified.isAnonymous ? SessionStart(identity.providerID) : nil
        do {
            return try await users.session(tenantID: user.tenantID, uid: user.uid).change(
                by: verified.token, provingAs: start, settings: settings, origin: origin,
                deadline: deadline
            ) { transaction, current in
                let (owner, emailOwner) = try transaction.reading.accounts(
                    of: identity, tenantID: settings.tenantID, known: current)
                _ = try LinkDecision.link(identity, to: current, owner: owner, emailOwner: emailOwner)
                try transaction.useProof(of: identity, tenantID: settings.tenantID)
                var linked = current
                linked.adopt(identity)
                return AccountEffect(linked, kind: .providerLinked, detail: identity.providerID)
            }
        } catch let failure as Failure where failure.reason == "CREDENTIAL_ALREADY_IN_USE" {
            throw failure.with("pending_token", try pendingToken(for: identity, settings: settings))
        }
    }

    /// Proves a signed-in user by an identity linked to it. USER_MISMATCH.
    public func reauthenticate(
        _ verified: VerifiedUser, with identity: FederatedIdentity, origin: Origin, deadline: Instant
    ) async throws -> SignedIn {
        let tenantID = verified.settings.tenantID
        return try await reauthenticate(
            verified, as: SessionStart(identity.providerID), origin: origin, deadline: deadline
        ) { transaction, current in
            let owner = try transaction.reading.accounts(of: identity, tenantID: tenantID).owner
            guard owner?.user.uid == current.user.uid else { throw Failure.userMismatch }
            try transaction.useProof(of: identity, tenantID: tenantID)
        }
    }

    /// The session's login is as recent as now when `check` throws nothing.
    public func reauthenticate(
        _ verified: VerifiedUser, as start: SessionStart, origin: Origin, deadline: Instant,
        _ check: @escaping @Sendable (borrowing WriteTransaction, Account) throws -> Void
    ) async throws -> SignedIn {
        let user = verified.account.user
        return try await users.session(tenantID: user.tenantID, uid: user.uid).change(
            by: verified.token, provingAs: start, settings: verified.settings, origin: origin,
            deadline: deadline
        ) { transaction, current in
            try check(transaction, current)
            return AccountEffect(current, kind: .reauthenticated, detail: start.provider)
        }
    }

    private func pendingToken(for identity: FederatedIdentity, settings: TenantSettings) throws -> String {
        try pendingCredentials.token(for: identity, tenantID: settings.tenantID, now: clock.now()).string
    }

    /// What sends the user to the account it has. The ways into it are named only where a tenant lets anybody ask.
    private func needsLinking(
        _ identity: FederatedIdentity, account uid: Text, settings: TenantSettings
    ) throws -> Failure {
        var metadata = [
            Failure.Entry("email", identity.email.string),
            Failure.Entry("pending_token", try pendingToken(for: identity, settings: settings)),
        ]
        if !settings.hasEmailPrivacy, let user = try store.read({ try $0.user(UserKey(settings.tenantID, uid)) }) {
            let methods = user.providers.map(\.providerID.string).joined(separator: ",")
            metadata.append(Failure.Entry("sign_in_methods", methods))
        }
        return Failure(
            .failedPrecondition, "ACCOUNT_EXISTS_WITH_DIFFERENT_CREDENTIAL",
            "An account has this email already; sign in to it the usual way, then link with the pending token.",
            metadata: metadata)
    }
}

extension LinkDecision {
    /// The account that is entered; nil for one that is to be made.
    fileprivate var uid: Text? {
        switch self {
        case .signIn(let uid), .link(let uid), .takeOver(let uid), .needsLinking(let uid): uid
        case .create, .createReleasing: nil
        }
    }
}

extension ReadTransaction {
    /// The account that has this identity, and the one whose primary email it names. Mostly they are one, and in a
    /// transaction that has read it already `known`: it is read no more than once.
    public func accounts(
        of identity: FederatedIdentity, tenantID: Text, known: Account? = nil
    ) throws -> (owner: Account?, emailOwner: Account?) {
        func find(_ uid: Text, among read: Account?) throws -> Account? {
            if let read, read.user.uid == uid { return read }
            return try account(UserKey(tenantID, uid))
        }
        let owner = try self.owner(of: IdentityName(identity.entry), tenantID: tenantID).flatMap {
            try find(Text(unchecked: $0), among: known)
        }
        let emailOwner = try Email(stored: identity.email).flatMap { try uid(ofEmail: $0, tenantID: tenantID) }.flatMap
        {
            try find($0, among: owner ?? known)
        }
        return (owner, emailOwner)
    }

    fileprivate func decision(
        on identity: FederatedIdentity, settings: TenantSettings, known: Account? = nil, now: Timestamp
    ) throws -> LinkDecision {
        let (owner, emailOwner) = try accounts(of: identity, tenantID: settings.tenantID, known: known)
        return try decision(on: identity, owner: owner, emailOwner: emailOwner, now: now)
    }

    func decision(
        on identity: FederatedIdentity, owner: Account?, emailOwner: Account?, now: Timestamp
    ) throws -> LinkDecision {
        let decision = try LinkDecision.signIn(identity, owner: owner, emailOwner: emailOwner)
        guard case .takeOver(let uid) = decision else { return decision }
        let isAnothers = try emailIsAnothers(UserKey(emailOwner?.user.tenantID ?? .empty, uid), now: now)
        return decision.respecting(isAnothers, owner: owner)
    }
}

extension WriteTransaction {
    /// What a decision about an existing account makes of it.
    fileprivate func effect(
        of decision: LinkDecision, on current: Account, identity: FederatedIdentity, now: Timestamp
    ) throws -> AccountEffect {
        var changed = current
        switch decision {
        case .signIn:
            changed.renew(identity)
            return AccountEffect(changed)
        case .link:
            changed.adopt(identity)
            return AccountEffect(changed, kind: .providerLinked, detail: identity.providerID)
        case .takeOver:
            let proof = try reading.proofOfUnprovedEmail(current, now: now)
            let removed = changed.keepOnlyProved(by: identity)
            try removeOobCodes(of: current.key, after: proof)
            return AccountEffect(changed, kind: .credentialsRemoved, detail: removed, endsSessions: .signedOut)
        case .create, .createReleasing, .needsLinking: throw AccountMoved()
        }
    }
}

extension Failure {
    /// A credential that is another user's, or nobody's, where the signed-in user's own was asked for.
    public static let userMismatch = Failure(
        .invalidArgument, "USER_MISMATCH", "The credential is not one of the signed-in user's.")
}
