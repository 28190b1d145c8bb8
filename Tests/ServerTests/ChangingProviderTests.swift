import Base
import Identity
import Messages
import Store
import TestSupport
import Testing

/// A provider that an admin disables, deletes, replaces or trusts less while a sign-in with it is on its way.
@Suite struct ChangingProviderTests {
    enum Change: CaseIterable, Sendable {
        case disable, delete
        /// After these the provider still signs users in, but has to prove them again.
        case replaceIssuer, distrust, deleteAndCreate

        static let endings: [Self] = [.disable, .delete]

        var isEnding: Bool { Self.endings.contains(self) }
    }

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
            case .disable: try update(["enabled"]) { $0.enabled = false }
            case .delete: try delete()
            case .replaceIssuer:
                try update(["issuer", "client_secret"]) { $0.issuer = Text("\(fake.issuer)/rogue") }
            case .distrust: try update(["trust"]) { $0.trust = ProviderTrust(level: .never) }
            case .deleteAndCreate:
                try delete()
                server.clock.advance(by: .milliseconds(1))
                try create()
            }
        }

        func create() throws {
            var provider = fake.provider("linkedin.com")
            provider.trust = ProviderTrust(level: .always)
            let _: ProvidersCreateResponse = try server.connect().call(
                "postern.v1.Providers/Create", ProvidersCreateRequest(provider: provider))
        }

        private func delete() throws {
            let _: ProvidersDeleteResponse = try server.connect().call(
                "postern.v1.Providers/Delete", ProvidersDeleteRequest(providerID: "linkedin.com"))
        }

        private func update(_ paths: [Text], _ change: (inout Provider) -> Void) throws {
            var provider = fake.provider("linkedin.com")
            change(&provider)
            let _: ProvidersUpdateResponse = try server.connect().call(
                "postern.v1.Providers/Update",
                ProvidersUpdateRequest(provider: provider, updateMask: ProtobufFieldMask(paths: paths)))
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

    private static func run(_ body: (Scene) async throws -> Void) async throws {
        let fake = FakeIdentityProvider(clock: ManualClock().clock)
        defer { fake.close() }
        try await withServer { server in
            let scene = Scene(server: server, fake: fake)
            try scene.create()
            try await body(scene)
        }
    }

    @Test(arguments: Change.endings)
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

    @Test(arguments: Change.endings)
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
            scene.whileAsked { try scene.apply(.distrust) }
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
            let reason = change.isEnding ? "OPERATION_NOT_ALLOWED" : "INVALID_MFA_PENDING_CREDENTIAL"
            expectRefusal(reason) { _ = try client.finish(pending, user) }
            guard change == .distrust else { return }
            // The identity is proved again, and its account is still the user's.
            let again = try client.pending { _ = try scene.signIn() }
            #expect(try client.finish(again, user).user?.uid == user.uid)
        }
    }

    @Test(arguments: Change.allCases)
    func `An enrollment credential is over`(change: Change) async throws {
        try await Self.run { scene in
            let client = try IdentityClient(scene.server)
            try client.setFactors(.mandatory)
            let credential = Text(
                failure { _ = try scene.signIn() }.metadata("enrollment_credential") ?? "")
            let started = try client.startApp(credential)
            try scene.apply(change)
            let reason = change.isEnding ? "OPERATION_NOT_ALLOWED" : "INVALID_ID_TOKEN"
            expectRefusal(reason) { _ = try client.startApp(credential) }
            expectRefusal(reason) { _ = try client.finalize(started, Secret("123456"), credential) }
            expectRefusal(reason) { _ = try client.lookup(credential) }
        }
    }

    /// Older servers did not note which configuration had proved the user.
    @Test func `A sign-in that waits since an older server is over only with its provider`() async throws {
        try await Self.run { scene in
            let client = try IdentityClient(scene.server)
            try client.setFactors(.enabled)
            let user = try client.enrollApp(Self.ann.email, try #require(try scene.signIn().tokens).idToken)
            let pending = try client.pending { _ = try scene.signIn() }
            try await scene.server.project.store.write { transaction in
                var rows: [(TenantHashKey, StoredPendingSignIn)] = []
                try transaction.scan(Tables.pendingSignIns) { row in
                    rows.append((try row.key, try row.record))
                    return true
                }
                for (key, row) in rows {
                    var row = row
                    row.providerUpdatedAtMicros = 0
                    try transaction.put(Tables.pendingSignIns, key, row)
                }
            }
            try scene.apply(.distrust)
            #expect(try client.finish(pending, user).user?.uid == user.uid)
        }
    }
}
