import Base
import Messages
import Rules
import Store

extension ReadTransaction {
    /// Requires, in the transaction that acts on a proved identity, that its provider is configured as it was when the
    /// identity was proved: an admin may have disabled or deleted the provider meanwhile, or trust it less.
    ///
    /// OPERATION_NOT_ALLOWED. Throws `AccountMoved` for another configuration, under which the identity has to be
    /// proved again.
    func requireStillProved(_ identity: FederatedIdentity, tenantID: Text) throws {
        let provider = try enabledProvider(identity.providerID, tenantID: tenantID)
        guard provider.updatedAtMicros == identity.providerUpdatedAt.microseconds else {
            throw AccountMoved(proofIsOld: true)
        }
    }

    /// The account that has this identity, and the account whose primary email the identity names. Mostly both are the
    /// same account, which the transaction may have read already as `known`: it is read at most once.
    func accounts(
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

    /// The decision on a sign-in with the identity, over these accounts as they are committed.
    func decision(
        on identity: FederatedIdentity, owner: Account?, emailOwner: Account?, now: Timestamp
    ) throws -> LinkDecision {
        let decision = try LinkDecision.signIn(identity, owner: owner, emailOwner: emailOwner)
        guard case .takeOver(let uid) = decision else { return decision }
        let isAnothers = try emailIsAnothers(UserKey(emailOwner?.user.tenantID ?? .empty, uid), now: now)
        return decision.respecting(isAnothers, owner: owner)
    }
}
