import Base
import Identity
import Messages
import Rules
import TestSupport
import Testing

/// A signed-in user without an email gets a first one by proving it: VERIFY_AND_CHANGE_EMAIL.
@Suite struct FirstEmailTests {
    private static let email: Text = "ada@example.com"

    /// A way to sign in that tells no email.
    enum Way: CaseIterable {
        case phone, provider, customToken

        func signIn(_ client: IdentityClient) throws -> (user: User, idToken: Text) {
            switch self {
            case .phone:
                let answer = try client.signIn(phone: SecondFactorSignInTests.number)
                return try Self.signedIn(answer.user, answer.tokens)
            case .provider:
                let answer = try client.signIn(.facebook(email: ""))
                return try Self.signedIn(answer.user, answer.tokens)
            case .customToken:
                let answer = try client.signIn(customTokenFor: "ada")
                return try Self.signedIn(answer.user, answer.tokens)
            }
        }

        private static func signedIn(_ user: User?, _ tokens: TokenPair?) throws -> (user: User, idToken: Text) {
            (try #require(user), try #require(tokens).idToken)
        }
    }

    private static func askForFirstEmail(_ client: IdentityClient, _ idToken: Text) throws -> IdentityClient.Mail {
        try client.sendOob(.verifyAndChangeEmail, newEmail: email, idToken: idToken)
        return try #require(try client.mails().first { $0.message.to == Self.email })
    }

    @Test(arguments: Way.allCases)
    func `A user without an email proves a first one, and keeps the account`(_ way: Way) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowPhones()
            let (user, idToken) = try way.signIn(client)
            #expect(user.email.isEmpty)
            let mail = try Self.askForFirstEmail(client, idToken)
            #expect(try client.get(user.uid).email.isEmpty)
            #expect(try client.applyOob(mail.code).email == Self.email)
            // As after every change of an email.
            expectRefusal("TOKEN_EXPIRED") { _ = try client.lookup(idToken) }
            let (again, _) = try way.signIn(client)
            #expect(again.uid == user.uid && again.email == Self.email && again.emailVerified)
            // The account is found by the email, too: by a provider that is trusted for it, for example.
            let google = FederatedIdentity.google("g-1", email: Self.email)
            #expect(try client.signIn(google).user?.uid == user.uid)
            // Whoever has the mailbox can take the address away, and the user still comes in.
            _ = try client.applyOob(mail.notMeCode)
            #expect(try way.signIn(client).user.email.isEmpty)
        }
    }

    @Test func `Who signs in by phone can add a second factor, once there is an email`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowPhones()
            try client.setFactors(.enabled)
            let (user, idToken) = try Way.phone.signIn(client)
            expectRefusal("UNVERIFIED_EMAIL") { _ = try client.startApp(idToken) }
            _ = try client.applyOob(try Self.askForFirstEmail(client, idToken).code)
            let app = try client.enrollApp(Self.email, try Way.phone.signIn(client).idToken)
            #expect(app.uid == user.uid)
            let pending = try client.pending { _ = try Way.phone.signIn(client) }
            #expect(try client.finish(pending, app).user?.uid == user.uid)
        }
    }

    @Test func `A first email is refused in order, and tells nothing of other accounts`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("taken@example.com")
            let (_, idToken) = try Way.customToken.signIn(client)
            func reason(_ newEmail: Text, _ idToken: Text) -> String {
                failure { try client.sendOob(.verifyAndChangeEmail, newEmail: newEmail, idToken: idToken) }.reason
            }
            #expect(reason("", idToken) == "MISSING_NEW_EMAIL")
            #expect(reason("taken@example.com", idToken) == "")
            #expect(try client.mails().isEmpty)
            try client.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            #expect(reason("taken@example.com", idToken) == "EMAIL_EXISTS")
            server.clock.advance(by: .seconds(301))
            #expect(reason(Self.email, idToken) == "CREDENTIAL_TOO_OLD_LOGIN_AGAIN")
        }
    }

    /// The proof ends every session, and nothing would lead back into the account but a reset of a password that it
    /// never had.
    @Test func `An anonymous user links an email instead`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_anonymous_user"]) { $0.enableAnonymousUser = true }
            let idToken = try #require(try client.signUp().tokens).idToken
            expectRefusal("MISSING_EMAIL") {
                try client.sendOob(.verifyAndChangeEmail, newEmail: Self.email, idToken: idToken)
            }
            #expect(try client.mails().isEmpty)
            let linked = try client.signUp(Self.email, linkingTo: idToken)
            try client.verifyEmail(try #require(linked.tokens).idToken)
            #expect(try client.find(Self.email).emailVerified)
        }
    }
}
