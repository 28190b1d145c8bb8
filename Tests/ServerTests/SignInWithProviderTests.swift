import Base
import Crypto
import Identity
import JSON
import Messages
import TestSupport
import Testing

/// A whole federated sign-in through the public methods: a real provider with its own keys, its tokens and codes.
@Suite struct SignInWithProviderTests {
    private typealias Person = FakeIdentityProvider.User

    private static func create(_ client: IdentityClient, _ provider: Provider, trusted: Bool) throws {
        var provider = provider
        provider.trust = ProviderTrust(
            level: trusted ? .always : .never,
            requiredClaim: trusted ? RequiredClaim(name: "email_verified", value: "true") : nil)
        let _: ProvidersCreateResponse = try client.client.call(
            "postern.v1.Providers/Create", ProvidersCreateRequest(provider: provider))
    }

    private static func signIn(
        _ client: IdentityClient, _ providerID: Text, _ credential: IdpCredential.Credential, nonce: Text = .empty,
        redirectURI: Text = .empty, verifier: Secret = .empty, linkingTo idToken: Text = .empty
    ) throws -> AccountsSignInWithIdpResponse {
        try client.client.call(
            "postern.v1.Accounts/SignInWithIdp",
            AccountsSignInWithIdpRequest(
                credential: IdpCredential(
                    providerID: providerID, credential: credential, nonce: nonce, redirectURI: redirectURI,
                    codeVerifier: verifier), idToken: idToken))
    }

    private func withProvider(
        _ body: (FakeIdentityProvider, IdentityClient) async throws -> Void
    ) async throws {
        try await withServer { server in
            let provider = FakeIdentityProvider(clock: server.clock.clock)
            defer { provider.close() }
            try await body(provider, try IdentityClient(server))
        }
    }

    private static let ada = Person(
        "ada-1", email: "ada@example.com", name: "Ada Lovelace", picture: "https://x.example/ada")

    @Test func anIDTokenOfTheProviderSignsUpThenIn() async throws {
        try await withProvider { provider, client in
            try Self.create(client, provider.provider("oidc.corp"), trusted: true)
            let first = try Self.signIn(
                client, "oidc.corp", .providerIDToken(provider.idToken(Self.ada, nonce: "n-1")), nonce: "n-1")
            #expect(first.isNewUser && first.user?.email == "ada@example.com" && first.user?.emailVerified == true)
            #expect(first.user?.displayName == "Ada Lovelace" && first.user?.photoURL == "https://x.example/ada")
            let again = try Self.signIn(client, "oidc.corp", .providerIDToken(provider.idToken(Self.ada)))
            #expect(!again.isNewUser && again.user?.uid == first.user?.uid)
            let claims: TokensVerifyIdTokenResponse = try client.client.call(
                "postern.v1.Tokens/VerifyIdToken", TokensVerifyIdTokenRequest(idToken: again.tokens!.idToken))
            let payload = try JSONValue(parsing: claims.claimsJSON)
            #expect(payload["firebase"]?["sign_in_provider"]?.text == "oidc.corp")
            #expect(payload["email_verified"] == .bool(true))
        }
    }

    @Test func aCodeIsExchangedWithItsVerifier() async throws {
        try await withProvider { provider, client in
            try Self.create(client, provider.provider("oidc.corp"), trusted: false)
            let verifier = Secret([UInt8](String(repeating: "v", count: 64).utf8))
            func exchange(_ verifier: Secret, used code: Secret) -> Failure {
                failure {
                    _ = try Self.signIn(
                        client, "oidc.corp", .authorizationCode(code), redirectURI: "https://app.example/back",
                        verifier: verifier)
                }
            }
            let code = provider.code(Self.ada, redirectURI: "https://app.example/back", verifier: verifier)
            #expect(exchange(verifier, used: code).reason == "")
            #expect(exchange(verifier, used: code).reason == "INVALID_IDP_RESPONSE")
            let other = provider.code(Self.ada, redirectURI: "https://app.example/back", verifier: verifier)
            let wrong = Secret([UInt8](String(repeating: "w", count: 64).utf8))
            #expect(exchange(wrong, used: other).reason == "INVALID_IDP_RESPONSE")
        }
    }

    @Test(arguments: ["facebook.com", "github.com"] as [Text])
    func anAccessTokenIsAskedAbout(_ providerID: Text) async throws {
        try await withProvider { provider, client in
            try Self.create(client, provider.provider(providerID), trusted: false)
            let person = Person("4711", email: "ada@example.com", name: "Ada")
            let signedIn = try Self.signIn(
                client, providerID, .providerAccessToken(provider.accessToken(person)))
            #expect(signedIn.user?.email == "ada@example.com" && signedIn.user?.emailVerified == false)
            #expect(signedIn.user?.providers.map(\.providerID) == [providerID])
            let foreign = failure {
                _ = try Self.signIn(
                    client, providerID, .providerAccessToken(provider.accessToken(person, clientID: "another-app")))
            }
            #expect(foreign.reason == "INVALID_IDP_RESPONSE")
        }
    }

    /// The same email at a second provider, with tokens: the first provider trusted or not, the second trusted or not.
    @Test(arguments: [(false, false), (true, false), (false, true), (true, true)])
    func aSecondProviderFollowsTheTrustTable(_ first: Bool, _ second: Bool) async throws {
        try await withProvider { provider, client in
            try Self.create(client, provider.provider("oidc.first"), trusted: first)
            try Self.create(client, provider.provider("oidc.second"), trusted: second)
            let one = try Self.signIn(client, "oidc.first", .providerIDToken(provider.idToken(Self.ada)))
            let other = Person("other-id", email: "ADA@example.com")
            let refused = failure {
                _ = try Self.signIn(client, "oidc.second", .providerIDToken(provider.idToken(other)))
            }
            #expect(refused.reason == (second ? "" : "ACCOUNT_EXISTS_WITH_DIFFERENT_CREDENTIAL"))
            let linked = Set(try client.get(one.user!.uid).providers.map(\.providerID))
            switch (first, second) {
            case (_, false): #expect(linked == ["oidc.first"])
            case (false, true): #expect(linked == ["oidc.second"])
            case (true, true): #expect(linked == ["oidc.first", "oidc.second"])
            }
        }
    }

    @Test func aProviderThatCallsTheEmailUnverifiedIsNotTrusted() async throws {
        try await withProvider { provider, client in
            try Self.create(client, provider.provider("oidc.corp"), trusted: true)
            _ = try client.signUp("ada@example.com")
            for claim in [JSONValue.bool(false), .string("false"), nil] {
                let liar = Person("liar", email: "ada@example.com", emailVerified: claim)
                let refused = failure {
                    _ = try Self.signIn(client, "oidc.corp", .providerIDToken(provider.idToken(liar)))
                }
                #expect(refused.reason == "ACCOUNT_EXISTS_WITH_DIFFERENT_CREDENTIAL")
            }
        }
    }

    @Test func whatProvesNothingSignsNobodyIn() async throws {
        try await withProvider { provider, client in
            try Self.create(client, provider.provider("oidc.corp"), trusted: true)
            let claims = provider.claims(Self.ada)
            let foreign = Self.foreignKey
            let forged: [(String, Secret)] = [
                ("another key", provider.sign(claims, key: foreign)),
                ("another audience", provider.idToken(Self.ada, audience: "client-2")),
                ("another issuer", provider.sign(claims.replacing("iss", "https://evil.example"))),
                ("expired", provider.sign(claims.replacing("exp", .integer(server(client).seconds - 61)))),
                ("from tomorrow", provider.sign(claims.replacing("iat", .integer(server(client).seconds + 86_400)))),
                ("no subject", provider.sign(claims.replacing("sub", nil))),
                ("alg none", provider.sign(claims, header: [("alg", "none")])),
                ("alg HS256", provider.sign(claims, header: [("alg", "HS256")])),
                ("no token", Secret([UInt8]("not.a.token".utf8))), ("nothing", Secret([UInt8]("x".utf8))),
            ]
            for (what, token) in forged {
                let refused = failure { _ = try Self.signIn(client, "oidc.corp", .providerIDToken(token)) }
                #expect(refused.reason == "INVALID_IDP_RESPONSE", "\(what)")
            }
            let listed: UsersListResponse = try client.client.call("postern.v1.Users/List", UsersListRequest())
            #expect(listed.users.isEmpty)
        }
    }

    private static let foreignKey = SigningKey.generate(.es256)

    private func server(_ client: IdentityClient) -> Timestamp { client.server.clock.clock.now() }

    @Test func aProviderInTroubleIsSaidSoAndChangesNothing() async throws {
        try await withProvider { provider, client in
            try Self.create(client, provider.provider("oidc.corp"), trusted: true)
            provider.misbehave(.down)
            let refused = failure {
                _ = try Self.signIn(client, "oidc.corp", .providerIDToken(provider.idToken(Self.ada)))
            }
            #expect(refused.code == .unavailable && refused.reason == "IDP_UNAVAILABLE")
            let absent = failure {
                _ = try Self.signIn(client, "oidc.none", .providerIDToken(provider.idToken(Self.ada)))
            }
            #expect(absent.reason == "OPERATION_NOT_ALLOWED")
        }
    }

    // MARK: Explaining

    private static func explain(
        _ client: IdentityClient, _ claims: String, uid: Text = .empty
    ) throws -> UsersExplainLinkResponse {
        try client.client.call(
            "postern.v1.Users/ExplainLink",
            UsersExplainLinkRequest(providerID: "oidc.corp", claimsJSON: Array(claims.utf8), uid: uid))
    }

    @Test func explainingSaysWhatWouldHappenAndDoesNothing() async throws {
        try await withProvider { provider, client in
            try Self.create(client, provider.provider("oidc.corp"), trusted: true)
            let trusted = #"{"sub":"1","email":"ada@example.com","email_verified":true}"#
            let untrusted = #"{"sub":"1","email":"ada@example.com"}"#
            #expect(try Self.explain(client, trusted).outcome == .create)
            let uid = try #require(try client.signUp("ada@example.com").user).uid
            let takeOver = try Self.explain(client, trusted)
            #expect(takeOver.outcome == .takeOver && takeOver.uid == uid && takeOver.emailTrusted)
            #expect(takeOver.removedProviderIDs == ["password"])
            let needs = try Self.explain(client, untrusted)
            #expect(needs.outcome == .needsLinking && needs.reason == "ACCOUNT_EXISTS_WITH_DIFFERENT_CREDENTIAL")
            #expect(try Self.explain(client, untrusted, uid: uid).outcome == .link)
            try client.update(uid, ["email_verified"]) { $0.emailVerified = true }
            #expect(try Self.explain(client, trusted).outcome == .link)
            try client.update(uid, ["disabled"]) { $0.disabled = true }
            let refused = try Self.explain(client, trusted)
            #expect(refused.outcome == .refused && refused.reason == "USER_DISABLED")
            try client.setTenant(["client.permissions.disabled_user_signup"]) {
                $0.client = ClientConfig(permissions: ClientPermissions(disabledUserSignup: true))
            }
            let closed = try Self.explain(client, #"{"sub":"2","email":"new@example.com"}"#)
            #expect(closed.outcome == .refused && closed.reason == "ADMIN_RESTRICTED_OPERATION")
            #expect(try client.get(uid).providers.map(\.providerID) == ["password"])
        }
    }

    @Test(arguments: [("", "INVALID_CLAIMS"), ("{}", "INVALID_CLAIMS"), ("[]", "INVALID_CLAIMS")])
    func aQuestionThatMakesNoSenseIsRefused(_ claims: String, _ reason: String) async throws {
        try await withProvider { provider, client in
            let unknown = failure { _ = try Self.explain(client, #"{"sub":"1"}"#) }
            #expect(unknown.reason == "PROVIDER_NOT_FOUND")
            try Self.create(client, provider.provider("oidc.corp"), trusted: true)
            let refused = failure { _ = try Self.explain(client, claims) }
            #expect(refused.reason == reason)
        }
    }
}
