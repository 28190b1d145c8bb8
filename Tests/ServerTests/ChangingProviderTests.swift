import Base
import Messages
import TestSupport
import Testing

/// A provider that an admin disables, deletes or trusts less while a sign-in with it is on its way.
@Suite struct ChangingProviderTests {
    enum Change: CaseIterable, Sendable { case disable, delete }

    private static let ann = FakeIdentityProvider.User("4711", email: "ann@corp.example", name: "Ann")

    private struct Scene: Sendable {
        let server: TestServer
        let fake: FakeIdentityProvider

        /// A credential that the server has to ask the provider about.
        func credential() -> IdpCredential {
            let token = fake.accessToken(ChangingProviderTests.ann)
            return IdpCredential(providerID: "linkedin.com", credential: .providerAccessToken(token))
        }

        func signIn(linkingTo idToken: Text = .empty) throws -> AccountsSignInWithIdpResponse {
            try server.connect().call(
                "postern.v1.Accounts/SignInWithIdp",
                AccountsSignInWithIdpRequest(credential: credential(), idToken: idToken))
        }

        func apply(_ change: Change) throws {
            switch change {
            case .disable: try update("enabled") { $0.enabled = false }
            case .delete:
                let _: ProvidersDeleteResponse = try server.connect().call(
                    "postern.v1.Providers/Delete", ProvidersDeleteRequest(providerID: "linkedin.com"))
            }
        }

        func update(_ path: Text, _ change: (inout Provider) -> Void) throws {
            var provider = fake.provider("linkedin.com")
            change(&provider)
            let _: ProvidersUpdateResponse = try server.connect().call(
                "postern.v1.Providers/Update",
                ProvidersUpdateRequest(provider: provider, updateMask: ProtobufFieldMask(paths: [path])))
        }

        /// Has an admin make the change while the provider is asked for the user's profile.
        func whileAsked(_ body: @escaping @Sendable () throws -> Void) {
            fake.onRequest { [fake] path in
                guard path == "/userinfo" else { return }
                fake.onRequest { _ in }
                #expect(throws: Never.self) { try body() }
            }
        }
    }

    private static func run(_ body: (Scene) throws -> Void) async throws {
        let fake = FakeIdentityProvider(clock: ManualClock().clock)
        defer { fake.close() }
        try await withServer { server in
            var provider = fake.provider("linkedin.com")
            provider.trust = ProviderTrust(level: .always)
            let _: ProvidersCreateResponse = try server.connect().call(
                "postern.v1.Providers/Create", ProvidersCreateRequest(provider: provider))
            try body(Scene(server: server, fake: fake))
        }
    }

    @Test(arguments: Change.allCases)
    func `Nobody signs up or in`(change: Change) async throws {
        for hasAccount in [false, true] {
            try await Self.run { scene in
                if hasAccount { _ = try scene.signIn() }
                scene.whileAsked { try scene.apply(change) }
                expectRefusal("OPERATION_NOT_ALLOWED") { _ = try scene.signIn() }
                let page: UsersListResponse = try scene.server.connect().call(
                    "postern.v1.Users/List", UsersListRequest())
                #expect(page.users.count == (hasAccount ? 1 : 0))
            }
        }
    }

    @Test(arguments: Change.allCases)
    func `Nobody links or reauthenticates`(change: Change) async throws {
        try await Self.run { scene in
            let client = try IdentityClient(scene.server)
            let ada = try #require(try client.signUp("ada@example.com").tokens).idToken
            scene.whileAsked { try scene.apply(change) }
            expectRefusal("OPERATION_NOT_ALLOWED") { _ = try scene.signIn(linkingTo: ada) }
            #expect(try client.lookup(ada).providers.map(\.providerID) == ["password"])
        }
        try await Self.run { scene in
            let ann = try #require(try scene.signIn().tokens).idToken
            scene.whileAsked { try scene.apply(change) }
            expectRefusal("OPERATION_NOT_ALLOWED") {
                let _: AccountsReauthenticateResponse = try scene.server.connect().call(
                    "postern.v1.Accounts/Reauthenticate",
                    AccountsReauthenticateRequest(idToken: ann, credential: .idp(scene.credential())))
            }
        }
    }

    /// The identity is proved again under the configuration that counts now.
    @Test func `A provider that is trusted less in between is trusted less`() async throws {
        try await Self.run { scene in
            scene.whileAsked { try scene.update("trust") { $0.trust = ProviderTrust(level: .never) } }
            let user = try #require(try scene.signIn().user)
            #expect(user.email == Self.ann.email && !user.emailVerified)
        }
    }

    @Test(arguments: Change.allCases)
    func `A sign-in that waits for its second factor is over`(change: Change) async throws {
        try await Self.run { scene in
            let client = try IdentityClient(scene.server)
            try client.setFactors(.enabled)
            let user = try client.enrollApp(Self.ann.email, try #require(try scene.signIn().tokens).idToken)
            let pending = try client.pending { _ = try scene.signIn() }
            try scene.apply(change)
            expectRefusal("OPERATION_NOT_ALLOWED") { _ = try client.finish(pending, user) }
        }
    }
}
