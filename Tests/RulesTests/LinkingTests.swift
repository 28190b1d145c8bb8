import Base
import Messages
import Testing

@testable import Rules

/// Every row of provider trust × account's email verified × who owns the identity × email told × disabled.
@Suite struct LinkingTests {
    /// The owner of the identity before the sign-in.
    enum Owner: CaseIterable { case nobody, emailOwner, another }

    struct Row: CustomStringConvertible {
        let trusted: Bool
        let verified: Bool
        let owner: Owner
        let emailHasAccount: Bool
        let emailTold: Bool
        let disabled: Bool

        var description: String {
            "trusted \(trusted), verified \(verified), owner \(owner), email has account \(emailHasAccount), "
                + "email told \(emailTold), disabled \(disabled)"
        }

        var identity: FederatedIdentity {
            FederatedIdentity(
                providerID: "google.com", rawID: "g-1", email: emailTold ? "ada@example.com" : .empty,
                isEmailVerifiedByProvider: trusted, isEmailTrusted: trusted && emailTold, displayName: "Ada at Google",
                photoURL: "https://g.example/ada")
        }

        /// The account with the email as primary one: a password, a phone, an unverified provider.
        var emailOwner: Account? {
            guard emailHasAccount && emailTold else { return nil }
            var account = Account(user: User(tenantID: "acme", uid: "E"), passwordHash: "$argon2id$…")
            account.user.email = "Ada@Example.com"
            account.user.emailVerified = verified
            account.user.displayName = "Somebody"
            account.user.phoneNumber = "+14155550123"
            account.user.disabled = disabled
            account.user.providers = [ProviderInfo(providerID: "facebook.com", rawID: "f-9")]
            if owner == .emailOwner { account.user.providers.append(identityEntry) }
            account.deriveProviders()
            return account
        }

        var identityOwner: Account? {
            switch owner {
            case .nobody: return nil
            case .emailOwner: return emailOwner
            case .another:
                var account = Account(user: User(tenantID: "acme", uid: "P"))
                account.user.email = "other@example.com"
                account.user.disabled = disabled
                account.user.providers = [identityEntry]
                account.deriveProviders()
                return account
            }
        }

        private var identityEntry: ProviderInfo { ProviderInfo(providerID: "google.com", rawID: "g-1") }
    }

    static let rows: [Row] = [true, false].flatMap { trusted in
        [true, false].flatMap { verified in
            Owner.allCases.flatMap { owner in
                [true, false].flatMap { emailHasAccount in
                    [true, false].flatMap { emailTold in
                        [true, false].map { disabled in
                            Row(
                                trusted: trusted, verified: verified, owner: owner, emailHasAccount: emailHasAccount,
                                emailTold: emailTold, disabled: disabled)
                        }
                    }
                }
            }
        }
    }

    private func decision(_ row: Row) -> Result<LinkDecision, Failure> {
        Result { () throws(Failure) -> LinkDecision in
            try LinkDecision.signIn(row.identity, owner: row.identityOwner, emailOwner: row.emailOwner)
        }
    }

    @Test(arguments: rows) func signInDecidesEveryRow(_ row: Row) {
        let expected: Result<LinkDecision, Failure>
        switch (row.identityOwner, row.emailOwner) {
        case (let owner?, _):
            let isOwn = row.owner == .emailOwner && row.trusted && !row.verified
            if row.disabled {
                expected = .failure(.userDisabled)
            } else {
                expected = .success(isOwn ? .takeOver(uid: "E") : .signIn(uid: owner.user.uid))
            }
        case (nil, nil): expected = .success(.create)
        case (nil, .some):
            switch (row.trusted, row.disabled, row.verified) {
            case (false, _, _): expected = .success(.needsLinking(uid: "E"))
            case (true, true, _): expected = .failure(.userDisabled)
            case (true, false, true): expected = .success(.link(uid: "E"))
            case (true, false, false): expected = .success(.takeOver(uid: "E"))
            }
        }
        #expect(decision(row) == expected)
    }

    @Test(arguments: rows) func anUnprovedEmailNeverJoinsAnIdentityToAnAccount(_ row: Row) throws {
        guard case .success(let decision) = decision(row) else { return }
        switch decision {
        case .link: #expect(row.trusted && row.verified)
        case .takeOver: #expect(row.trusted && !row.verified)
        case .signIn(let uid): #expect(uid == row.identityOwner?.user.uid)
        case .create: #expect(row.emailOwner == nil)
        case .createReleasing: Issue.record("needs to know of a way back")
        case .needsLinking: #expect(!row.trusted)
        }
    }

    /// When the account belongs to the holder of its former address, nobody takes it over. A person with an identity
    /// of the account signs in as before, and everybody else gets an account of their own.
    @Test(arguments: rows) func anAccountWithAWayBackIsNotTakenOver(_ row: Row) {
        guard case .success(let decision) = decision(row) else { return }
        let respected = decision.respecting(true, owner: row.identityOwner)
        if case .takeOver(let uid) = decision {
            #expect(respected == (row.identityOwner == nil ? .createReleasing(uid: uid) : .signIn(uid: uid)))
        } else {
            #expect(respected == decision)
        }
        #expect(decision.respecting(false, owner: row.identityOwner) == decision)
    }

    @Test func takingOverLeavesOnlyWhatWasProved() throws {
        let row = Row(
            trusted: true, verified: false, owner: .nobody, emailHasAccount: true, emailTold: true, disabled: false)
        var account = try #require(row.emailOwner)
        account.signsInByEmailLink = true
        account.user.customClaimsJSON = Array(#"{"staff":true}"#.utf8)
        let removed = account.keepOnlyProved(by: row.identity)
        #expect(removed == "facebook.com,password,phone")
        #expect(account.user.providers.map(\.providerID) == ["google.com"])
        #expect(account.user.uid == "E")
        #expect(account.user.emailVerified)
        #expect(account.user.phoneNumber.isEmpty)
        #expect(account.user.displayName == "Ada at Google")
        #expect(!account.hasPassword && !account.signsInByEmailLink)
        #expect(account.user.customClaimsJSON == Array(#"{"staff":true}"#.utf8))
    }

    @Test func takingOverByACodeLeavesNoProviderAtAll() throws {
        let row = Row(
            trusted: true, verified: false, owner: .emailOwner, emailHasAccount: true, emailTold: true, disabled: false)
        var account = try #require(row.emailOwner)
        #expect(account.keepOnlyProved(by: nil) == "facebook.com,google.com,password,phone")
        #expect(account.user.providers.isEmpty)
        #expect(account.user.displayName == "Somebody")
    }

    @Test func joiningFillsEmptyProfileFieldsAndLeavesFullOnes() {
        var account = Account(user: User(tenantID: "acme", uid: "u"))
        account.user.displayName = "Chosen"
        let identity = FederatedIdentity(
            providerID: "oidc.corp", rawID: "7", email: "ada@example.com", isEmailTrusted: false,
            displayName: "From corp", photoURL: "https://corp.example/ada")
        account.adopt(identity)
        #expect(account.user.displayName == "Chosen")
        #expect(account.user.photoURL == "https://corp.example/ada")
        #expect(account.user.email == "ada@example.com")
        #expect(!account.user.emailVerified)
    }

    @Test func aTrustedIdentityVerifiesOnlyTheEmailItNames() {
        var account = Account(user: User(tenantID: "acme", uid: "u"))
        account.user.email = "work@example.com"
        account.adopt(
            FederatedIdentity(providerID: "google.com", rawID: "1", email: "ada@gmail.com", isEmailTrusted: true))
        #expect(account.user.email == "work@example.com")
        #expect(!account.user.emailVerified)
    }

    // MARK: Linking to a user who is signed in

    @Test(arguments: rows) func linkingRefusesForeignCredentialsAndEmails(_ row: Row) {
        var user = Account(user: User(tenantID: "acme", uid: "S"))
        user.user.email = "self@example.com"
        let decided = Result { () throws(Failure) -> LinkDecision in
            try LinkDecision.link(
                row.identity, to: user, owner: row.identityOwner, emailOwner: row.emailOwner)
        }
        switch (row.identityOwner, row.emailOwner) {
        case (.some, _): #expect(decided == .failure(.credentialInUse(detail: .federatedUserIDAlreadyLinked)))
        case (nil, .some): #expect(decided == .failure(.credentialInUse(detail: .emailExists)))
        case (nil, nil): #expect(decided == .success(.link(uid: "S")))
        }
    }

    @Test func linkingOnesOwnIdentityAgainSaysSo() {
        var user = Account(user: User(tenantID: "acme", uid: "S"))
        user.user.providers = [ProviderInfo(providerID: "google.com", rawID: "g-1")]
        let identity = FederatedIdentity(providerID: "google.com", rawID: "g-1")
        #expect(throws: Failure.providerAlreadyLinked("google.com")) {
            try LinkDecision.link(identity, to: user, owner: user, emailOwner: nil)
        }
        let second = FederatedIdentity(providerID: "google.com", rawID: "g-2")
        #expect(throws: Failure.providerAlreadyLinked("google.com")) {
            try LinkDecision.link(second, to: user, owner: nil, emailOwner: nil)
        }
    }
}
