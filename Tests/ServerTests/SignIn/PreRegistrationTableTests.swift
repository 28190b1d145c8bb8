import Base
import Identity
import Messages
import Rules
import TestSupport
import Testing

/// Somebody registers a victim's address in advance, without proving it; then the victim arrives. Each way to sign in
/// that the account may have begun with × each way by which the victim may arrive. A new method has rows here as soon
/// as it has a driver, and does not compile without saying what it proves.
///
/// `PreHijackingTests` has more that the attacker may hold by then, such as codes and cookies.
@Suite struct PreRegistrationTableTests {
    private static let victim: Text = "victim@example.com"
    private static let attackersPassword: Text = "attacker's password"
    private static let attackersNumber: Text = "+14155550144"
    private static let attackersEmail: Text = "mallory@example.com"

    /// The attacker's account.
    private struct Registered {
        let uid: Text
        let tokens: TokenPair
        /// Signs in as the account began, and returns the uid of the account.
        let signInAgain: () throws -> Text?
    }

    /// Whether an end user who signs in this way has proved to own the email.
    private static func provesEmail(_ way: SignInWay) -> Bool {
        switch way.driver.name {
        case .emailLinkSignIn: true
        case .federatedSignIn: way.variant == "trusted"
        case .anonymousSignUp, .customTokenSignIn, .passwordSignIn, .passwordSignUp, .phoneSignIn: false
        }
    }

    @Test(arguments: SignInWay.all, SignInWay.all)
    func `Nobody signs in to another's account by an address that was registered in advance`(
        _ beginning: SignInWay, _ arrival: SignInWay
    ) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            // Otherwise no email could be changed to one that nobody has proved.
            try client.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            let attacker = try Self.register(beginning, client)
            let before = try client.get(attacker.uid)
            #expect(before.email == Self.victim && !before.emailVerified)
            server.clock.advance(by: .seconds(60))
            let refused = failure { try arrival.signIn(client, "victim") }.reason
            guard Self.provesEmail(arrival) else {
                // Nobody is signed in to the account, and it is not changed.
                #expect(try client.get(attacker.uid) == before)
                #expect(try client.find(Self.victim).uid == attacker.uid)
                return
            }
            #expect(refused.isEmpty)
            try Self.expectOutside(attacker, client)
        }
    }

    /// Expects that the attacker has nothing of the account that has the address by now.
    private static func expectOutside(_ attacker: Registered, _ client: IdentityClient) throws {
        let owner = try client.find(victim)
        #expect(owner.emailVerified && owner.phoneNumber.isEmpty)
        #expect(owner.providers.allSatisfy { ["google.com", "password"].contains($0.providerID) })
        #expect(owner.providers.allSatisfy { $0.rawID != "mallory" })
        expectRefusal("TOKEN_EXPIRED") { _ = try client.lookup(attacker.tokens.idToken) }
        expectRefusal("TOKEN_EXPIRED") { _ = try client.refresh(attacker.tokens.refreshToken) }
        let sneaked = failure {
            _ = try client.signIn(.github("later", email: ""), linkingTo: attacker.tokens.idToken)
        }
        #expect(sneaked.reason == "TOKEN_EXPIRED")
        expectRefusal("INVALID_PASSWORD") { _ = try client.signIn(victim, password: attackersPassword) }
        let signedIn = try? attacker.signInAgain()
        #expect(signedIn != owner.uid)
        #expect(try client.find(victim) == owner)
    }

    // MARK: The attacker

    private static func register(_ beginning: SignInWay, _ client: IdentityClient) throws -> Registered {
        func signInWithPassword() throws -> Text? {
            try client.signIn(victim, password: attackersPassword).user?.uid
        }
        switch beginning.driver.name {
        case .passwordSignUp:
            let made = try client.signUp(victim, password: attackersPassword)
            return try registered(made.user, made.tokens, signInWithPassword)
        case .passwordSignIn:
            _ = try client.signUp(victim, password: attackersPassword)
            let made = try client.signIn(victim, password: attackersPassword)
            return try registered(made.user, made.tokens, signInWithPassword)
        case .anonymousSignUp:
            return try adding(try client.signUp().tokens, client, signInWithPassword)
        case .customTokenSignIn:
            return try adding(try client.signIn(customTokenFor: "mallory").tokens, client) {
                try client.signIn(customTokenFor: "mallory").user?.uid
            }
        case .phoneSignIn:
            return try adding(try client.signIn(phone: attackersNumber).tokens, client) {
                try client.signIn(phone: attackersNumber).user?.uid
            }
        case .federatedSignIn:
            if beginning.variant == "trusted" {
                return try adding(try client.signIn(.google("mallory", email: "")).tokens, client) {
                    try client.signIn(.google("mallory", email: "")).user?.uid
                }
            }
            return try adding(try client.signIn(.github("mallory", email: victim)).tokens, client) {
                try client.signIn(.github("mallory", email: victim)).user?.uid
            }
        case .emailLinkSignIn:
            let made = try signInByLink(client)
            return try moving(made, client) { try signInByLink(client).user?.uid }
        }
    }

    private static func registered(
        _ user: User?, _ tokens: TokenPair?, _ signInAgain: @escaping () throws -> Text?
    ) throws -> Registered {
        Registered(uid: try #require(user).uid, tokens: try #require(tokens), signInAgain: signInAgain)
    }

    /// Gives the account of `tokens` the victim's email and a password.
    private static func adding(
        _ tokens: TokenPair?, _ client: IdentityClient, _ signInAgain: @escaping () throws -> Text?
    ) throws -> Registered {
        let linked = try client.signUp(
            victim, password: attackersPassword, linkingTo: try #require(tokens).idToken)
        return try registered(linked.user, linked.tokens, signInAgain)
    }

    /// Moves the account, which has the attacker's own email, to the victim's, which nobody has proved.
    private static func moving(
        _ made: AccountsSignInWithEmailLinkResponse, _ client: IdentityClient,
        _ signInAgain: @escaping () throws -> Text?
    ) throws -> Registered {
        let idToken = try #require(made.tokens).idToken
        let linked = try client.signUp(attackersEmail, password: attackersPassword, linkingTo: idToken)
        client.server.clock.advance(by: .seconds(1))
        let changed: AccountsUpdateResponse = try client.client.call(
            "postern.v1.Accounts/Update",
            AccountsUpdateRequest(
                idToken: try #require(linked.tokens).idToken, updateMask: ProtobufFieldMask(paths: ["email"]),
                email: victim))
        return try registered(changed.user, changed.tokens, signInAgain)
    }

    private static func signInByLink(_ client: IdentityClient) throws -> AccountsSignInWithEmailLinkResponse {
        try client.sendOob(.emailSignin, email: attackersEmail)
        return try client.signIn(attackersEmail, link: try client.mails()[0].code)
    }
}
