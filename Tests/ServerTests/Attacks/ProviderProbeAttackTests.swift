import Base
import Identity
import Messages
import Rules
import TestSupport
import Testing

/// Asking which emails have an account, by identities of a provider that lets its users claim any email.
@Suite struct ProviderProbeAttackTests {
    private static let address: Text = "198.51.100.7"
    private static let taken = "ACCOUNT_EXISTS_WITH_DIFFERENT_CREDENTIAL"

    private struct Scene {
        let admin: IdentityClient
        let asker: RawClient

        func signIn(
            _ identity: FederatedIdentity, linkingTo idToken: Text = .empty, from address: Text = address
        ) throws -> AccountsSignInWithIdpResponse {
            try signIn(admin.credential(identity), linkingTo: idToken, from: address)
        }

        func signIn(
            _ credential: IdpCredential, linkingTo idToken: Text = .empty, from address: Text = address
        ) throws -> AccountsSignInWithIdpResponse {
            try asker.call(
                "postern.v1.Accounts/SignInWithIdp",
                AccountsSignInWithIdpRequest(credential: credential, idToken: idToken, endUserIP: address))
        }

        /// Asks for the email of each of these users by an identity that claims it. Returns the answers' reasons.
        func ask(
            _ users: Range<Int>, linkingTo idToken: Text = .empty, _ email: (Int) -> Text = Scene.takenEmail
        ) -> [String] {
            users.map { number in
                let email = email(number)
                return failure {
                    _ = try signIn(.facebook(Text("claims \(email)"), email: email), linkingTo: idToken)
                }.reason
            }
        }

        static func takenEmail(_ number: Int) -> Text { Text("user\(number)@example.com") }
        static func freeEmail(_ number: Int) -> Text { Text("free\(number)@example.com") }
    }

    /// A server with users 0 to 39.
    private static func run(_ body: (Scene) async throws -> Void) async throws {
        try await withServer { server in
            let admin = try IdentityClient(server)
            for number in 0..<40 {
                let _: UsersCreateResponse = try admin.client.call(
                    "postern.v1.Users/Create", UsersCreateRequest(email: Scene.takenEmail(number)))
            }
            try await body(Scene(admin: admin, asker: try Guesser(server).client))
        }
    }

    @Test func `40 claimed emails from one address are told of 30 times`() async throws {
        try await Self.run { scene in
            let answers = scene.ask(0..<40)
            #expect(answers.prefix(30).allSatisfy { $0 == Self.taken })
            #expect(answers.dropFirst(30).allSatisfy { $0 == tooManyAttempts })
            // A free email is refused like a taken one, so the refusal tells nothing.
            #expect(scene.ask(0..<5, Scene.freeEmail).allSatisfy { $0 == tooManyAttempts })
            expectRefusal(Self.taken) { _ = try scene.signIn(.facebook(email: "user39@example.com"), from: "") }
        }
    }

    @Test func `Where nobody may sign up, a free email is charged like a taken one`() async throws {
        try await Self.run { scene in
            try scene.admin.setTenant(["client.permissions.disabled_user_signup"]) {
                $0.client = ClientConfig(permissions: ClientPermissions(disabledUserSignup: true))
            }
            #expect(scene.ask(0..<20, Scene.freeEmail).allSatisfy { $0 == "ADMIN_RESTRICTED_OPERATION" })
            #expect(scene.ask(0..<10).allSatisfy { $0 == Self.taken })
            #expect(scene.ask(10..<12).allSatisfy { $0 == tooManyAttempts })
            #expect(scene.ask(20..<22, Scene.freeEmail).allSatisfy { $0 == tooManyAttempts })
        }
    }

    @Test func `A hundred honest people sign up and in by such a provider behind one address`() async throws {
        try await Self.run { scene in
            #expect(scene.ask(0..<100, Scene.freeEmail).allSatisfy { $0 == "" })
            _ = scene.ask(0..<40)
            // Whoever has an account enters it, and whoever proves the email asks no question.
            #expect(scene.ask(0..<100, Scene.freeEmail).allSatisfy { $0 == "" })
            _ = try scene.signIn(.google(email: "user7@example.com"))
        }
    }

    /// The email is known only after the provider took the code, and takes it no second time.
    @Test func `A refused end user goes on with what the code proved`() async throws {
        try await Self.run { scene in
            let provider = FakeIdentityProvider(clock: scene.admin.server.clock.clock)
            defer { provider.close() }
            let _: ProvidersCreateResponse = try scene.admin.client.call(
                "postern.v1.Providers/Create", ProvidersCreateRequest(provider: provider.provider("oidc.corp")))
            _ = scene.ask(0..<30)
            func code(_ subject: Text, _ email: Text) -> IdpCredential {
                let code = provider.code(FakeIdentityProvider.User(subject, email: email))
                return IdpCredential(providerID: "oidc.corp", credential: .authorizationCode(code))
            }
            // A taken and a free email are refused alike.
            let taken = failure { _ = try scene.signIn(code("1", Scene.takenEmail(1))) }
            let free = failure { _ = try scene.signIn(code("2", Scene.freeEmail(2))) }
            #expect(taken.reason == tooManyAttempts && taken.metadata("pending_token") != nil)
            #expect(free.reason == tooManyAttempts)
            let token = Secret(try #require(free.metadata("pending_token")))
            let credential = IdpCredential(credential: .pendingToken(token))
            // The token gets around no throttle.
            expectRefusal(tooManyAttempts) { _ = try scene.signIn(credential) }
            let answer = try scene.signIn(credential, from: "")
            #expect(answer.isNewUser && answer.user?.email == Scene.freeEmail(2))
            #expect(provider.server.requestCount("/token") == 2)
            // What can be sent again comes back as nothing else.
            let other = failure { _ = try scene.signIn(.facebook(email: "x@example.com")) }
            #expect(other.reason == tooManyAttempts && other.metadata("pending_token") == nil)
        }
    }

    @Test func `Linking a claimed email tells of it no more often`() async throws {
        try await Self.run { scene in
            let eve = try #require(try scene.admin.signUp("eve@example.com").tokens).idToken
            let answers = scene.ask(0..<40, linkingTo: eve)
            #expect(answers.prefix(30).allSatisfy { $0 == "CREDENTIAL_ALREADY_IN_USE" })
            #expect(answers.dropFirst(30).allSatisfy { $0 == tooManyAttempts })
            #expect(scene.ask(0..<2, linkingTo: eve, Scene.freeEmail).allSatisfy { $0 == tooManyAttempts })
            // The user's own email is no question, nor is an identity without an email.
            _ = try scene.signIn(.facebook(email: "eve@example.com"), linkingTo: eve)
            _ = try scene.signIn(.github(email: ""), linkingTo: eve)
        }
    }

    @Test func `Linking and unlinking free emails is charged`() async throws {
        try await Self.run { scene in
            var token = try #require(try scene.admin.signUp("eve@example.com").tokens).idToken
            var answers: [String] = []
            for number in 0..<32 {
                answers.append(
                    failure {
                        let linked = try scene.signIn(
                            .facebook(Text("f-\(number)"), email: Scene.freeEmail(number)), linkingTo: token)
                        let unlinked: AccountsUnlinkResponse = try scene.asker.call(
                            "postern.v1.Accounts/Unlink",
                            AccountsUnlinkRequest(
                                idToken: try #require(linked.tokens).idToken, providerID: "facebook.com"))
                        token = try #require(unlinked.tokens).idToken
                    }.reason)
            }
            #expect(answers.prefix(30).allSatisfy { $0 == "" })
            #expect(answers.dropFirst(30).allSatisfy { $0 == tooManyAttempts })
        }
    }
}
