import Base
import Crypto
import Identity
import Messages
import Rules
import Store
import TestSupport
import Testing

/// A used proof must not count again: a code for a password after the password was changed by other means, and a
/// pending token after another token of the same proof was used.
@Suite struct SpentProofAttackTests {
    private static let email: Text = "ada@example.com"

    /// The events that void a code for resetting the password.
    enum Ending: CaseIterable {
        case passwordByAdmin, passwordRemovedByAdmin, disabled, disabledForAMoment, ownPassword, replacedByImport
    }

    private static func end(_ ending: Ending, _ client: IdentityClient, _ user: AccountsSignUpResponse) throws {
        let uid = user.user!.uid
        switch ending {
        case .passwordByAdmin: try client.update(uid, ["password"]) { $0.password = Secret("the admin's horse") }
        case .passwordRemovedByAdmin: try client.update(uid, ["password"]) { $0.password = .empty }
        case .disabled: try client.update(uid, ["disabled"]) { $0.disabled = true }
        case .disabledForAMoment:
            for value in [true, false] { try client.update(uid, ["disabled"]) { $0.disabled = value } }
        case .ownPassword:
            let _: AccountsUpdateResponse = try client.client.call(
                "postern.v1.Accounts/Update",
                AccountsUpdateRequest(
                    idToken: user.tokens!.idToken, updateMask: ProtobufFieldMask(paths: ["password"]),
                    password: Secret("another horse")))
        case .replacedByImport:
            let replacement = ImportUser(uid: uid, email: email, emailVerified: true)
            let answer = try ImportTests.importing(client.client, [replacement], onConflict: .replace)
            #expect(answer.replacedCount == 1)
        }
    }

    @Test(arguments: Ending.allCases)
    func `A code for a new password ends with the account's own change`(_ ending: Ending) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let user = try client.signUp(Self.email)
            try client.sendOob(.passwordReset, email: Self.email)
            let code = try client.mails()[0].code
            #expect(try client.checkOob(code).requestType == .passwordReset)
            try Self.end(ending, client, user)
            expectRefusal("INVALID_OOB_CODE") { _ = try client.checkOob(code) }
            expectRefusal("INVALID_OOB_CODE") { _ = try client.resetPassword(code, "the thief's horse") }
        }
    }

    /// An account without a password has such codes, too: its owner may want one.
    @Test func `A code for a new password ends when the user links a password`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let tokens = try #require(try client.signIn(.google(email: Self.email)).tokens)
            try client.sendOob(.passwordReset, email: Self.email)
            let code = try EmailRecoveryTests.newestCode(client, .passwordReset)
            _ = try client.signUp(Self.email, linkingTo: tokens.idToken)
            expectRefusal("INVALID_OOB_CODE") { _ = try client.resetPassword(code, "the thief's horse") }
            _ = try client.signIn(Self.email)
        }
    }

    @Test func `A code for a new password outlives every other change`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let user = try client.signUp(Self.email)
            try client.sendOob(.passwordReset, email: Self.email)
            let code = try client.mails()[0].code
            _ = try client.signIn(Self.email)
            try client.update(user.user!.uid, ["display_name"]) { $0.displayName = "Ada" }
            _ = try client.signIn(.facebook(email: ""), linkingTo: user.tokens!.idToken)
            _ = try client.resetPassword(code, "another horse")
            _ = try client.signIn(Self.email, password: "another horse")
        }
    }

    @Test func `A code for a new password does not come back with the email`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try EmailRecoveryTests.verifiedAccount(client, Self.email)
            try client.sendOob(.passwordReset, email: Self.email)
            let code = try EmailRecoveryTests.newestCode(client, .passwordReset)
            let elsewhere: Text = "elsewhere@example.com"
            for (old, new) in [(Self.email, elsewhere), (elsewhere, Self.email)] {
                let idToken = try #require(try client.signIn(old).tokens).idToken
                try client.sendOob(.verifyAndChangeEmail, newEmail: new, idToken: idToken)
                _ = try client.applyOob(try EmailRecoveryTests.newestCode(client, .verifyAndChangeEmail))
            }
            #expect(try client.signIn(Self.email).user?.email == Self.email)
            expectRefusal("INVALID_OOB_CODE") { _ = try client.checkOob(code) }
            expectRefusal("INVALID_OOB_CODE") { _ = try client.resetPassword(code, "the thief's horse") }
        }
    }

    // MARK: Sign-in links

    /// A user with a proved email, and a link that somebody else read in the user's mailbox.
    private static func withReadLink(
        _ body: (IdentityClient, AccountsSignUpResponse, _ link: Secret) throws -> Void
    ) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
            let user = try client.signUp(email)
            try client.verifyEmail(try #require(user.tokens).idToken)
            try client.sendOob(.emailSignin, email: email)
            try body(client, user, try EmailRecoveryTests.newestCode(client, .emailSignin))
        }
    }

    /// The link is void, and the mailbox's owner can have another one.
    private static func expectVoid(_ link: Secret, _ client: IdentityClient, _ user: AccountsSignUpResponse) throws {
        expectRefusal("INVALID_OOB_CODE") { _ = try client.signIn(email, link: link) }
        try client.sendOob(.emailSignin, email: email)
        let next = try EmailRecoveryTests.newestCode(client, .emailSignin)
        #expect(try client.signIn(email, link: next).user?.uid == user.user?.uid)
    }

    @Test(arguments: [Ending.passwordByAdmin, .passwordRemovedByAdmin, .replacedByImport])
    func `A sign-in link ends with a password that an admin sets`(_ ending: Ending) async throws {
        try await Self.withReadLink { client, user, link in
            try Self.end(ending, client, user)
            try Self.expectVoid(link, client, user)
        }
    }

    @Test func `A sign-in link ends with a reset of the password`() async throws {
        try await Self.withReadLink { client, user, link in
            try client.sendOob(.passwordReset, email: Self.email)
            _ = try client.resetPassword(try EmailRecoveryTests.newestCode(client, .passwordReset), "another horse")
            try Self.expectVoid(link, client, user)
        }
    }

    /// The address is another person's than the account's. The person gets an account of its own by the reset.
    @Test func `A sign-in link ends with a reset that makes an account`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_email_link_signin", "enable_email_privacy"]) {
                $0.enableEmailLinkSignin = true
                $0.enableEmailPrivacy = false
            }
            let thief = try EmailRecoveryTests.verifiedAccount(client, "thief@example.com")
            _ = try EmailRecoveryTests.move(client, to: Self.email, thief.idToken)
            try client.sendOob(.emailSignin, email: Self.email)
            let link = try EmailRecoveryTests.newestCode(client, .emailSignin)
            try client.sendOob(.passwordReset, email: Self.email)
            _ = try client.resetPassword(try EmailRecoveryTests.newestCode(client, .passwordReset), "another horse")
            expectRefusal("INVALID_OOB_CODE") { _ = try client.signIn(Self.email, link: link) }
            #expect(try client.signIn(Self.email, password: "another horse").user?.email == Self.email)
        }
    }

    /// A thief in a session must not void the links by which the owner wants to come in.
    @Test func `A sign-in link outlives a password that is set in a session`() async throws {
        try await Self.withReadLink { client, user, link in
            try Self.end(.ownPassword, client, user)
            #expect(try client.signIn(Self.email, link: link).user?.uid == user.user?.uid)
        }
    }

    // MARK: Pending tokens

    private static func signIn(
        _ client: IdentityClient, _ pending: Text, linkingTo idToken: Text = .empty
    ) throws -> AccountsSignInWithIdpResponse {
        let credential = IdpCredential(credential: .pendingToken(Secret(pending.bytes)))
        return try client.client.call(
            "postern.v1.Accounts/SignInWithIdp",
            AccountsSignInWithIdpRequest(credential: credential, idToken: idToken))
    }

    private static func reauthenticate(_ client: IdentityClient, _ pending: Text, _ idToken: Text) throws {
        let credential = IdpCredential(credential: .pendingToken(Secret(pending.bytes)))
        let _: AccountsReauthenticateResponse = try client.client.call(
            "postern.v1.Accounts/Reauthenticate",
            AccountsReauthenticateRequest(idToken: idToken, credential: .idp(credential)))
    }

    enum Use: CaseIterable { case link, signIn, reauthenticate }

    @Test(arguments: Use.allCases)
    func `A proof that was used is worth nothing, by any of its tokens`(_ use: Use) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let ada = try client.signUp(Self.email).tokens!
            let identity = FederatedIdentity.facebook("f-1", email: Self.email)
            if use == .reauthenticate { _ = try client.signIn(identity, linkingTo: ada.idToken) }
            // Each refusal brings another token of the same proof.
            var tokens = [client.pendingToken(identity)]
            if use != .reauthenticate {
                for _ in 0..<2 {
                    let refused = failure { _ = try Self.signIn(client, tokens.last!) }
                    #expect(refused.reason == "ACCOUNT_EXISTS_WITH_DIFFERENT_CREDENTIAL")
                    tokens.append(Text(refused.metadata("pending_token")!))
                }
            }
            switch use {
            case .link: _ = try Self.signIn(client, tokens.last!, linkingTo: ada.idToken)
            case .signIn:
                let uid = try client.lookup(ada.idToken).uid
                let _: UsersDeleteResponse = try client.client.call(
                    "postern.v1.Users/Delete", UsersDeleteRequest(uid: uid))
                _ = try Self.signIn(client, tokens.last!)
            case .reauthenticate: try Self.reauthenticate(client, tokens.last!, ada.idToken)
            }
            for token in tokens {
                expectRefusal("INVALID_PENDING_TOKEN") { _ = try Self.signIn(client, token) }
                guard use != .signIn else { continue }
                expectRefusal("INVALID_PENDING_TOKEN") { try Self.reauthenticate(client, token, ada.idToken) }
            }
            // Another proof of the same identity counts.
            _ = try client.signIn(identity)
        }
    }

    @Test func `What is kept of a used proof goes a minute after the proof would have expired`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let token = client.pendingToken(.facebook(email: ""))
            _ = try Self.signIn(client, token)
            expectRefusal("INVALID_PENDING_TOKEN") { _ = try Self.signIn(client, token) }
            #expect(try Self.usedProofCount(server) == 1)
            server.clock.advance(by: .seconds(601))
            await server.project.sweep()
            #expect(try Self.usedProofCount(server) == 1)
            expectRefusal("INVALID_PENDING_TOKEN") { _ = try Self.signIn(client, token) }
            server.clock.advance(by: .minutes(1))
            await server.project.sweep()
            #expect(try Self.usedProofCount(server) == 0)
            expectRefusal("INVALID_PENDING_TOKEN") { _ = try Self.signIn(client, token) }
        }
    }

    private static func usedProofCount(_ server: TestServer) throws -> Int {
        var count = 0
        try server.project.store.read { transaction in
            try transaction.scan(Tables.usedProofs) { _ in
                count += 1
                return true
            }
        }
        return count
    }
}
