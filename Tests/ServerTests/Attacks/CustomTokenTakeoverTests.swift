import Base
import Identity
import Messages
import Rules
import TestSupport
import Testing

/// The user of a back end gives its account a victim's email, without a proof. The back end signs custom tokens for
/// this user under the account's uid, also after the victim has come. If the user typed the email before the first
/// custom token, the account is the victim's (decision 0147).
@Suite struct CustomTokenTakeoverTests {
    private static let victim: Text = "victim@example.com"
    private static let attackersPassword: Text = "attacker's password"

    /// How the attacker's account first met a custom token, before it had an email.
    enum Beginning: CaseIterable { case made, signedIn, reauthenticated }
    /// How the victim proves the email.
    enum Arrival: CaseIterable { case reset, link, provider }

    private static func run(_ body: (IdentityClient) throws -> Void) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            try body(client)
        }
    }

    /// Makes the attacker's account, which has the victim's email; returns its uid.
    private static func begin(_ beginning: Beginning, _ client: IdentityClient) throws -> Text {
        guard beginning != .made else {
            let tokens = try #require(try client.signIn(customTokenFor: "mallory").tokens)
            _ = try client.signUp(victim, password: attackersPassword, linkingTo: tokens.idToken)
            return "mallory"
        }
        let made = try client.signUp()
        let uid = try #require(made.user).uid
        let idToken = try #require(made.tokens).idToken
        if beginning == .signedIn {
            _ = try client.signIn(customTokenFor: uid)
        } else {
            _ = try LinkTests.reauthenticate(client, idToken, .customToken(try client.customToken(for: uid)))
        }
        _ = try client.signUp(victim, password: attackersPassword, linkingTo: idToken)
        return uid
    }

    private static func arrive(_ arrival: Arrival, _ client: IdentityClient) throws {
        client.server.clock.advance(by: .seconds(60))
        switch arrival {
        case .reset:
            try client.sendOob(.passwordReset, email: victim)
            let code = try EmailRecoveryTests.newestCode(client, .passwordReset)
            _ = try client.resetPassword(code, "victim's password")
        case .link:
            try client.sendOob(.emailSignin, email: victim)
            _ = try client.signIn(victim, link: try EmailRecoveryTests.newestCode(client, .emailSignin))
        case .provider: _ = try client.signIn(.google("victim", email: victim))
        }
    }

    @Test(arguments: Beginning.allCases, Arrival.allCases)
    func `The victim gets an account that the back end's user cannot sign in to`(
        _ beginning: Beginning, _ arrival: Arrival
    ) async throws {
        try await Self.run { client in
            let uid = try Self.begin(beginning, client)
            try Self.arrive(arrival, client)
            let owner = try client.find(Self.victim)
            #expect(owner.uid != uid && owner.emailVerified)
            let again = try #require(try client.signIn(customTokenFor: uid).user)
            #expect(again.uid == uid && again.email.isEmpty)
            #expect(try client.find(Self.victim) == owner)
        }
    }

    /// Deletes the users, and imports what an export of them had.
    private static func importAnew(_ client: IdentityClient) throws -> [ImportUser] {
        let server = client.server
        let exported = try ExportTests.export(
            server, UsersExportRequest(includePasswordHashes: true), key: try ExportTests.exporter(server))
        let users = exported.flatMap(\.users)
        for user in users {
            let _: UsersDeleteResponse = try client.client.call(
                "postern.v1.Users/Delete", UsersDeleteRequest(uid: user.uid))
        }
        let answer = try ExportTests.importAll(server, users, exported.flatMap(\.hashSpecs))
        #expect(answer.createdCount == Int64(users.count), "\(answer.rejections)")
        return users
    }

    @Test(arguments: Beginning.allCases, Arrival.allCases)
    func `The same holds after an export and an import`(_ beginning: Beginning, _ arrival: Arrival) async throws {
        try await Self.run { client in
            let uid = try Self.begin(beginning, client)
            let row = try #require(try Self.importAnew(client).first { $0.uid == uid })
            #expect(row.customTokenSignIn && row.emailTypedByUser)
            try Self.arrive(arrival, client)
            let owner = try client.find(Self.victim)
            #expect(owner.uid != uid && owner.emailVerified)
            let again = try #require(try client.signIn(customTokenFor: uid).user)
            #expect(again.uid == uid && again.email.isEmpty)
        }
    }

    @Test func `An account that began without the back end is the email's owner's after an import, too`() async throws {
        try await Self.run { client in
            let uid = try #require(try client.signUp(Self.victim, password: Self.attackersPassword).user).uid
            let row = try #require(try Self.importAnew(client).first)
            #expect(!row.customTokenSignIn && row.emailTypedByUser)
            _ = try client.signIn(customTokenFor: uid)
            #expect(try Self.importAnew(client).first?.customTokenSignIn == false)
            try Self.arrive(.provider, client)
            #expect(try client.find(Self.victim).uid == uid)
        }
    }

    @Test func `What an admin said of the email counts more than a row that says the user typed it`() async throws {
        try await Self.run { client in
            _ = try client.signIn(customTokenFor: "ada")
            try client.update("ada", ["email"]) { $0.email = "ada@gmail.com" }
            var row = ImportUser(uid: "ada", email: "ada@gmail.com", emailTypedByUser: true)
            #expect(try ImportTests.importing(client.client, [row], onConflict: .replace).replacedCount == 1)
            let kept = try ExportTests.export(client.server, UsersExportRequest()).flatMap(\.users)
            #expect(kept.map(\.customTokenSignIn) == [true] && kept.map(\.emailTypedByUser) == [false])
            row.email = "eve@gmail.com"
            #expect(try ImportTests.importing(client.client, [row], onConflict: .replace).replacedCount == 1)
            let typed = try ExportTests.export(client.server, UsersExportRequest()).flatMap(\.users)
            #expect(typed.map(\.customTokenSignIn) == [true] && typed.map(\.emailTypedByUser) == [true])
        }
    }

    /// Such a token hands a session over to another device. Its users come back to their accounts by a reset or Google.
    @Test(arguments: Arrival.allCases)
    func `A custom token after the user typed the email does not keep the email's owner out`(
        _ arrival: Arrival
    ) async throws {
        try await Self.run { client in
            let uid = try #require(try client.signUp(Self.victim, password: Self.attackersPassword).user).uid
            _ = try client.signIn(customTokenFor: uid)
            try Self.arrive(arrival, client)
            #expect(try client.find(Self.victim).uid == uid)
        }
    }

    @Test func `An import that writes the same email again does not make it the user's`() async throws {
        try await Self.run { client in
            let uid = try Self.begin(.made, client)
            let row = ImportUser(uid: uid, email: Self.victim)
            #expect(try ImportTests.importing(client.client, [row], onConflict: .replace).replacedCount == 1)
            try Self.arrive(.provider, client)
            #expect(try client.find(Self.victim).uid != uid)
            #expect(try client.signIn(customTokenFor: uid).user?.email.isEmpty == true)
        }
    }

    @Test func `An import over the account does not hide that a back end signs for it`() async throws {
        try await Self.run { client in
            let number: Text = "+14155550144"
            _ = try client.signIn(customTokenFor: "mallory")
            let row = ImportUser(uid: "mallory", phoneNumber: number)
            #expect(try ImportTests.importing(client.client, [row], onConflict: .replace).replacedCount == 1)
            let idToken = try #require(try client.signIn(phone: number).tokens).idToken
            _ = try client.signUp(Self.victim, password: Self.attackersPassword, linkingTo: idToken)
            try Self.arrive(.link, client)
            #expect(try client.find(Self.victim).uid != "mallory")
        }
    }

    /// The way back to the former email is over, so that the custom token alone shows that the account is another's.
    @Test func `A custom token after which a second factor was shown counts as well`() async throws {
        try await Self.run { client in
            try client.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            try client.setFactors(.enabled)
            let user = try client.appUser("mallory@example.com")
            let pending = try client.pending { _ = try client.signIn(customTokenFor: user.uid) }
            _ = try client.finish(pending, user)
            let _: UsersRemoveSecondFactorResponse = try client.client.call(
                "postern.v1.Users/RemoveSecondFactor", UsersRemoveSecondFactorRequest(uid: user.uid, all: true))
            let idToken = try #require(try client.signIn(user.email).tokens).idToken
            _ = try EmailRecoveryTests.move(client, to: Self.victim, idToken)
            client.server.clock.advance(by: .days(8))
            try Self.arrive(.provider, client)
            #expect(try client.find(Self.victim).uid != user.uid)
        }
    }

    @Test func `Where nobody may sign up, the explanation does not deny that an account has the email`() async throws {
        try await Self.run { client in
            _ = try Self.begin(.made, client)
            let _: ProvidersCreateResponse = try client.client.call(
                "postern.v1.Providers/Create",
                ProvidersCreateRequest(provider: Provider(providerID: "apple.com", clientID: "client-1")))
            try client.setTenant(["client.permissions.disabled_user_signup"]) {
                $0.client = ClientConfig(permissions: ClientPermissions(disabledUserSignup: true))
            }
            let claims = #"{"sub":"1","email":"\#(Self.victim.string)","email_verified":"true"}"#
            let said: UsersExplainLinkResponse = try client.client.call(
                "postern.v1.Users/ExplainLink",
                UsersExplainLinkRequest(providerID: "apple.com", claimsJSON: Array(claims.utf8)))
            #expect(said.outcome == .refused && said.reason == "ADMIN_RESTRICTED_OPERATION")
            #expect(!said.explanation.string.contains("Nobody"))
        }
    }

    @Test func `An email that the back end's user proved stays with the account`() async throws {
        try await Self.run { client in
            let idToken = try #require(try client.signIn(customTokenFor: "ada").tokens).idToken
            let linked = try client.signUp("ada@gmail.com", linkingTo: idToken)
            try client.verifyEmail(try #require(linked.tokens).idToken)
            #expect(try client.signIn(.google()).user?.uid == "ada")
        }
    }

    @Test func `An email that an admin gave the account leads to the account`() async throws {
        try await Self.run { client in
            _ = try client.signIn(customTokenFor: "ada")
            try client.update("ada", ["email"]) { $0.email = "ada@gmail.com" }
            #expect(try client.signIn(.google()).user?.uid == "ada")
            let again = try #require(try client.signIn(customTokenFor: "ada").user)
            #expect(again.email == "ada@gmail.com" && again.emailVerified)
        }
    }
}
