import Base
import Identity
import Messages
import Rules
import TestSupport
import Testing

/// Somebody registers another's address in advance and keeps a way in; then the owner arrives. Every way to keep a foot
/// in the door × every way for the owner to prove the address (Sudhodanan and Paverd, USENIX Security 2022).
@Suite struct PreHijackingTests {
    enum Foothold: CaseIterable {
        case password, untrustedProvider, session, pendingEmailChange, linkedProvider, recoverEmailCode, phone
        case pendingToken, sessionCookie
    }

    /// What the attacker holds when the owner comes, beside a session.
    enum Kept {
        case nothing
        case code(Secret)
        /// Takes the attacker's own account back to the attacker's own address.
        case wayBackOfOwnAccount(Secret)
        case pendingToken(Secret)
        case sessionCookie(Text)
    }

    enum Arrival: CaseIterable { case trustedProvider, emailLink, passwordReset }

    private static let victim: Text = "victim@gmail.com"

    @Test(arguments: Foothold.allCases, Arrival.allCases)
    func theAttackerEndsUpOutside(_ foothold: Foothold, _ arrival: Arrival) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
            let attacker = try Self.register(client, foothold)
            let uid = try client.lookup(attacker.idToken).uid
            let kept = try Self.keepFoot(client, foothold, attacker)
            server.clock.advance(by: .seconds(60))
            try Self.arrive(client, arrival)
            // The owner has the account.
            let account = try #require(
                try server.project.users.account(email: Email(stored: Self.victim)!, tenantID: "")
            )
            .user
            #expect(account.emailVerified)
            // An account that had another verified address stays with its owner: the victim gets a new one.
            #expect((account.uid == uid) == (foothold != .recoverEmailCode))
            try Self.expectOutside(client, of: account.uid, attacker, kept)
            let after = try client.get(account.uid)
            #expect(after.email == Self.victim && after.phoneNumber.isEmpty)
            #expect(after.providers.allSatisfy { ["google.com", "password"].contains($0.providerID) })
        }
    }

    /// The owner follows the attacker's verification link without a thought, then the mail's other link: "this was not
    /// me". The account keeps what the attacker put into it, and the owner makes one of their own.
    @Test(arguments: Foothold.allCases.filter { ![.recoverEmailCode, .untrustedProvider].contains($0) })
    func afterANaiveClickTheAttackerLosesTheAddress(_ foothold: Foothold) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let attacker = try Self.register(client, foothold)
            let uid = try client.lookup(attacker.idToken).uid
            let kept = try Self.keepFoot(client, foothold, attacker)
            try client.sendOob(.verifyEmail, idToken: attacker.idToken)
            let mail = try client.mails()[0]
            _ = try client.applyOob(mail.code)
            server.clock.advance(by: .seconds(60))
            _ = try client.applyOob(mail.notMeCode)
            #expect(try client.get(uid).email.isEmpty)
            let owner = try #require(try client.signUp(Self.victim, password: "the owner's password").user)
            #expect(owner.uid != uid)
            try Self.expectOutside(client, of: owner.uid, attacker, kept)
            #expect(try client.get(owner.uid).email == Self.victim)
        }
    }

    /// Expects that the attacker has nothing of the account.
    private static func expectOutside(
        _ client: IdentityClient, of uid: Text, _ attacker: TokenPair, _ kept: Kept
    ) throws {
        expectRefusal("TOKEN_EXPIRED") { _ = try client.lookup(attacker.idToken) }
        expectRefusal("TOKEN_EXPIRED") { _ = try client.refresh(attacker.refreshToken) }
        let sneaked = failure {
            _ = try client.signIn(.github("later", email: "evil@example.com"), linkingTo: attacker.idToken)
        }
        #expect(sneaked.reason == "TOKEN_EXPIRED")
        #expect(reasonOfSigningIn(client, "attacker's password") == "INVALID_LOGIN_CREDENTIALS")
        expectRefusal("ACCOUNT_EXISTS_WITH_DIFFERENT_CREDENTIAL") {
            _ = try client.signIn(.facebook("attacker", email: victim))
        }
        #expect(uidOfSigningIn(client, .github("attacker", email: "evil@example.com")) != uid)
        switch kept {
        case .nothing: break
        case .code(let code): expectRefusal("INVALID_OOB_CODE") { _ = try client.applyOob(code) }
        case .wayBackOfOwnAccount(let code):
            #expect(try client.applyOob(code).email == "evil@example.com")
            expectRefusal("TOKEN_EXPIRED") { _ = try client.lookup(attacker.idToken) }
        case .pendingToken(let token):
            let refused = failure { _ = try signIn(client, pendingToken: token) }
            #expect(refused.reason == "ACCOUNT_EXISTS_WITH_DIFFERENT_CREDENTIAL")
        case .sessionCookie(let cookie):
            let refused = failure {
                let _: TokensVerifySessionCookieResponse = try client.client.call(
                    "postern.v1.Tokens/VerifySessionCookie", TokensVerifySessionCookieRequest(sessionCookie: cookie))
            }
            #expect(refused.reason == "TOKEN_EXPIRED")
        }
    }

    private static func register(_ client: IdentityClient, _ foothold: Foothold) throws -> TokenPair {
        switch foothold {
        case .untrustedProvider: try client.signIn(.facebook("attacker", email: victim)).tokens!
        case .recoverEmailCode: try client.signUp("evil@example.com", password: "attacker's password").tokens!
        default: try client.signUp(victim, password: "attacker's password").tokens!
        }
    }

    /// What the attacker does before the owner comes.
    private static func keepFoot(
        _ client: IdentityClient, _ foothold: Foothold, _ attacker: TokenPair
    ) throws -> Kept {
        let uid = try client.lookup(attacker.idToken).uid
        switch foothold {
        case .password, .untrustedProvider, .session: return .nothing
        case .pendingEmailChange:
            try client.sendOob(.verifyAndChangeEmail, newEmail: "evil@example.com", idToken: attacker.idToken)
            return .code(try #require(try client.mails().first).code)
        case .linkedProvider:
            _ = try client.signIn(.github("attacker", email: "evil@example.com"), linkingTo: attacker.idToken)
            return .nothing
        case .recoverEmailCode:
            // First the attacker's own address, then the victim's, unproved: the recovery code goes to the attacker.
            try client.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            try client.sendOob(.verifyEmail, idToken: attacker.idToken)
            _ = try client.applyOob(try client.mails()[0].code)
            _ = try EmailRecoveryTests.move(client, to: victim, attacker.idToken)
            try client.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = true }
            let recovery = try #require(try client.mails().first { $0.message.requestType == .recoverEmail }).code
            return .wayBackOfOwnAccount(recovery)
        case .phone:
            try client.update(uid, ["phone_number"]) { $0.phoneNumber = "+14155550123" }
            return .nothing
        case .sessionCookie:
            let made: TokensCreateSessionCookieResponse = try client.client.call(
                "postern.v1.Tokens/CreateSessionCookie", TokensCreateSessionCookieRequest(idToken: attacker.idToken))
            return .sessionCookie(made.sessionCookie)
        case .pendingToken:
            let refused = failure { _ = try client.signIn(.github("pending", email: victim)) }
            return .pendingToken(Secret(try #require(refused.metadata("pending_token"))))
        }
    }

    private static func arrive(_ client: IdentityClient, _ arrival: Arrival) throws {
        switch arrival {
        case .trustedProvider: _ = try client.signIn(.google("victim", email: victim))
        case .emailLink:
            try client.sendOob(.emailSignin, email: victim)
            _ = try client.signIn(victim, link: try client.mails()[0].code)
        case .passwordReset:
            try client.sendOob(.passwordReset, email: victim)
            _ = try client.resetPassword(try client.mails()[0].code, "the owner's password")
        }
    }

    private static func reasonOfSigningIn(_ client: IdentityClient, _ password: Text) -> String {
        failure { _ = try client.signIn(victim, password: password) }.reason
    }

    private static func signIn(
        _ client: IdentityClient, pendingToken: Secret
    ) throws -> AccountsSignInWithIdpResponse {
        try client.client.call(
            "postern.v1.Accounts/SignInWithIdp",
            AccountsSignInWithIdpRequest(credential: IdpCredential(credential: .pendingToken(pendingToken))))
    }

    private static func uidOfSigningIn(_ client: IdentityClient, _ identity: FederatedIdentity) -> Text? {
        try? client.signIn(identity).user?.uid
    }
}
