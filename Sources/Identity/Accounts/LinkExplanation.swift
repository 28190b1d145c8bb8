public import Base
public import Messages
public import Rules
public import Store

extension IdentityProviders {
    /// Explains what `LinkDecision` decides on an identity, over the stored accounts; changes nothing.
    public func explainLink(
        claimsJSON: [UInt8], providerID: Text, linkingTo uid: Text, settings: TenantSettings, now: Timestamp,
        in transaction: borrowing ReadTransaction
    ) throws -> UsersExplainLinkResponse {
        let tenantID = settings.tenantID
        let identity = try identity(saying: claimsJSON, providerID: providerID, settings: settings, in: transaction)
        let (owner, emailOwner) = try transaction.accounts(of: identity, tenantID: tenantID)
        var response = UsersExplainLinkResponse(emailTrusted: identity.isEmailTrusted)
        do {
            if uid.isEmpty {
                let decision = try transaction.decision(on: identity, owner: owner, emailOwner: emailOwner, now: now)
                response.describe(decision, identity, owner ?? emailOwner, settings)
                return response
            }
        } catch let failure as Failure {
            response.refuse(failure)
            return response
        }
        guard let user = try transaction.account(UserKey(tenantID, uid)) else { throw Failure.userNotFound }
        do throws(Failure) {
            let decision = try LinkDecision.link(identity, to: user, owner: owner, emailOwner: emailOwner)
            response.describe(decision, identity, user, settings)
        } catch {
            response.refuse(error)
        }
        return response
    }
}

extension UsersExplainLinkResponse {
    fileprivate mutating func refuse(_ failure: Failure) {
        outcome = .refused
        reason = Text(failure.reason)
        explanation = Text(failure.message)
    }

    fileprivate mutating func describe(
        _ decision: LinkDecision, _ identity: FederatedIdentity, _ account: Account?, _ settings: TenantSettings
    ) {
        let trust = identity.isEmailTrusted ? "trusted" : "not trusted"
        switch decision {
        case .signIn(let uid):
            (outcome, self.uid) = (.signIn, uid)
            explanation = "The identity is linked to this account, which is entered."
        case .create, .createReleasing:
            guard SelfService.refusalOfSignUp(settings) == nil else {
                (outcome, reason) = (.refused, Text(Reason.adminRestrictedOperation.name))
                explanation = "The identity enters no account, and end users may not sign up by themselves."
                return
            }
            outcome = .create
            if case .createReleasing(let uid) = decision {
                explanation = Text(
                    "The account \(uid) has the email without a proof, and is another person's (it had a proved email "
                        + "before, or signs in by custom tokens): an account is made, which gets the email.")
                return
            }
            explanation = Text(
                "Nobody has the identity or its email: an account is made. The provider is \(trust) for the email, "
                    + "which is \(identity.isEmailTrusted ? "" : "not ")verified then.")
        case .link(let uid):
            (outcome, self.uid) = (.link, uid)
            explanation = "The account and the provider both prove the email, or the user links it: it is joined."
        case .takeOver(let uid):
            (outcome, self.uid) = (.takeOver, uid)
            var taken = account
            let removed = taken?.keepOnlyProved(by: identity) ?? .empty
            removedProviderIDs = removed.bytes.split(separator: UInt8(ascii: ",")).map { Text(unchecked: Array($0)) }
            explanation = "The account's email was never verified and the provider proves it: all else is removed."
        case .needsLinking(let uid):
            (outcome, self.uid) = (.needsLinking, uid)
            reason = Text(Reason.accountExistsWithDifferentCredential.name)
            explanation = "This account has the email and the provider is not trusted for it: sign in there, then link."
        }
    }
}
