import Base
import Identity
import JSON
import Messages
import TestSupport
import Testing

/// A sign-in from the first redirect to the session: the browser is sent to a real provider and brings a code back.
@Suite struct CreateAuthUriTests {
    private typealias Person = FakeIdentityProvider.User

    private static let back: Text = "https://app.example/back?from=idp"
    private static let ada = Person("ada-1", email: "ada@example.com", name: "Ada")

    private func withProvider(
        _ providerID: Text = "oidc.corp", configure: (inout Provider) -> Void = { _ in },
        _ body: (FakeIdentityProvider, IdentityClient) throws -> Void
    ) async throws {
        try await withServer { server in
            let provider = FakeIdentityProvider(clock: server.clock.clock)
            defer { provider.close() }
            let client = try IdentityClient(server)
            try client.setTenant(["allowed_continue_domains", "allow_loopback_continue_url"]) {
                $0.allowedContinueDomains = ["app.example", "a.example", "com.example.app:"]
                $0.allowLoopbackContinueURL = true
            }
            var configured = provider.provider(providerID)
            configure(&configured)
            let _: ProvidersCreateResponse = try client.client.call(
                "postern.v1.Providers/Create", ProvidersCreateRequest(provider: configured))
            try body(provider, client)
        }
    }

    private static func ask(
        _ client: IdentityClient, _ providerID: Text = "oidc.corp", identifier: Text = .empty,
        continueURI: Text = back, scopes: [Text] = [], parameters: [AuthUriParameter] = []
    ) throws -> AccountsCreateAuthUriResponse {
        try client.client.call(
            "postern.v1.Accounts/CreateAuthUri",
            AccountsCreateAuthUriRequest(
                identifier: identifier, providerID: providerID, continueURI: continueURI, scopes: scopes,
                customParameters: parameters))
    }

    private static func finish(
        _ client: IdentityClient, _ begun: AccountsCreateAuthUriResponse, code: Secret,
        _ providerID: Text = "oidc.corp", nonce: Text? = nil, verifier: Secret? = nil, continueURI: Text = back
    ) throws -> AccountsSignInWithIdpResponse {
        try client.client.call(
            "postern.v1.Accounts/SignInWithIdp",
            AccountsSignInWithIdpRequest(
                credential: IdpCredential(
                    providerID: providerID, credential: .authorizationCode(code), nonce: nonce ?? begun.nonce,
                    redirectURI: continueURI, codeVerifier: verifier ?? begun.codeVerifier)))
    }

    @Test func `The browser goes to the provider and comes back with a code that signs in`() async throws {
        try await withProvider { provider, client in
            let begun = try Self.ask(client)
            let visit = try #require(provider.visit(begun.authURI, as: Self.ada))
            #expect(visit.redirectURI == Self.back && visit.state == begun.sessionID)
            #expect(begun.issuer == provider.issuer)
            #expect(visit.scopes == ["openid", "email", "profile"])
            let signedIn = try Self.finish(client, begun, code: visit.code)
            #expect(signedIn.isNewUser && signedIn.user?.email == "ada@example.com")
            #expect(try client.lookup(signedIn.tokens?.idToken ?? .empty).uid == signedIn.user?.uid)
        }
    }

    @Test(arguments: ["github.com", "facebook.com", "twitter.com", "linkedin.com", "google.com"] as [Text])
    func `A known provider is asked the way it understands`(_ providerID: Text) async throws {
        func configure(_ provider: inout Provider) {
            let origin = provider.endpoints?.token.string.dropLast("/token".count) ?? ""
            provider.endpoints?.authorization = Text("\(origin)/authorize")
        }
        try await withProvider(providerID, configure: configure) { provider, client in
            if providerID != "linkedin.com" && providerID != "google.com" { provider.setHasIDTokens(false) }
            let begun = try Self.ask(client, providerID)
            #expect(begun.nonce.isEmpty == (providerID != "google.com"))
            #expect(begun.codeVerifier.isEmpty == (providerID == "linkedin.com"))
            #expect(begun.issuer.isEmpty == ["github.com", "twitter.com"].contains(providerID))
            let visit = try #require(provider.visit(begun.authURI, as: Person("4711", email: "ada@example.com")))
            #expect(visit.state == begun.sessionID)
            let signedIn = try Self.finish(client, begun, code: visit.code, providerID)
            #expect(signedIn.user?.providers.map(\.providerID) == [providerID])
        }
    }

    @Test func `Apple is asked to post the code, as it wants for scopes`() async throws {
        try await withProvider("apple.com") { _, client in
            let _: ProvidersUpdateResponse = try client.client.call(
                "postern.v1.Providers/Update",
                ProvidersUpdateRequest(
                    provider: Provider(providerID: "apple.com"),
                    updateMask: ProtobufFieldMask(paths: [
                        "issuer", "endpoints", "allow_http_loopback", "client_secret",
                    ])
                ))
            let uri = try Self.ask(client, "apple.com").authURI.string
            #expect(uri.hasPrefix("https://appleid.apple.com/auth/authorize?response_type=code&client_id=client-1&"))
            #expect(uri.contains("&response_mode=form_post") && uri.contains("&scope=openid%20email%20name&"))
        }
    }

    @Test func `State, nonce and verifier are new each time, and the URI shows no verifier`() async throws {
        try await withProvider { _, client in
            let (one, other) = (try Self.ask(client), try Self.ask(client))
            var seen: Set<String> = []
            for begun in [one, other] {
                let verifier = begun.codeVerifier.withBytes { String(decoding: $0, as: UTF8.self) }
                for value in [begun.sessionID.string, begun.nonce.string, verifier] {
                    #expect(value.utf8.count == 43)
                    seen.insert(value)
                }
                #expect(!begun.authURI.string.contains(verifier))
            }
            #expect(seen.count == 6)
        }
    }

    @Test func `A code counts only with the nonce and the verifier of its own request, and once`() async throws {
        try await withProvider { provider, client in
            let (mine, theirs) = (try Self.ask(client), try Self.ask(client))
            func refusal(_ body: (Secret) throws -> AccountsSignInWithIdpResponse) throws -> Failure {
                let code = try #require(provider.visit(mine.authURI, as: Self.ada)).code
                return failure { _ = try body(code) }
            }
            let wrongNonce = try refusal { try Self.finish(client, mine, code: $0, nonce: theirs.nonce) }
            #expect(wrongNonce.reason == "INVALID_IDP_RESPONSE" && wrongNonce.metadata("detail") == "WRONG_NONCE")
            for refused in [
                try refusal { try Self.finish(client, mine, code: $0, verifier: theirs.codeVerifier) },
                try refusal { try Self.finish(client, mine, code: $0, verifier: .empty) },
                try refusal { try Self.finish(client, mine, code: $0, continueURI: "https://app.example/other") },
            ] {
                #expect(refused.reason == "INVALID_IDP_RESPONSE" && refused.metadata("detail") == "REJECTED")
            }
            let code = try #require(provider.visit(mine.authURI, as: Self.ada)).code
            _ = try Self.finish(client, mine, code: code)
            expectRefusal("INVALID_IDP_RESPONSE") { _ = try Self.finish(client, mine, code: code) }
        }
    }

    @Test func `Scopes are added once, and parameters travel whatever they hold`() async throws {
        try await withProvider { provider, client in
            let begun = try Self.ask(
                client, scopes: ["groups", "email"],
                parameters: [
                    AuthUriParameter(name: "prompt", value: "login"),
                    AuthUriParameter(name: "login_hint", value: "ada+b&state=x@example.com"),
                ])
            let visit = try #require(provider.visit(begun.authURI, as: Self.ada))
            #expect(visit.scopes == ["openid", "email", "profile", "groups"])
            #expect(visit.query["prompt"] == "login" && visit.query["login_hint"] == "ada+b&state=x@example.com")
            #expect(visit.state == begun.sessionID)
        }
    }

    @Test func `An endpoint that has a query keeps it`() async throws {
        func configure(_ provider: inout Provider) {
            provider.endpoints = ProviderEndpoints(authorization: Text("\(provider.issuer)/authorize?realm=corp"))
        }
        try await withProvider(configure: configure) { provider, client in
            let visit = try #require(provider.visit(try Self.ask(client).authURI, as: Self.ada))
            #expect(visit.query["realm"] == "corp" && visit.query["response_type"] == "code")
        }
    }

    @Test func `With an identifier it says what it says without a provider`() async throws {
        try await withProvider { _, client in
            _ = try client.signUp("ada@example.com")
            let hidden = try Self.ask(client, identifier: "ada@example.com")
            #expect(!hidden.registered && hidden.signInMethods.isEmpty && !hidden.authURI.isEmpty)
            try client.setTenant(["enable_email_privacy"]) { _ in }
            let open = try Self.ask(client, identifier: "ADA@example.com")
            #expect(open.registered && open.signInMethods == ["password"] && !open.authURI.isEmpty)
            let alone = try Self.ask(client, .empty, identifier: "ada@example.com", continueURI: .empty)
            #expect(alone.registered && alone.authURI.isEmpty && alone.sessionID.isEmpty && alone.codeVerifier.isEmpty)
        }
    }

    // MARK: Refusals

    @Test(arguments: [
        ("", "", "https://a.example", "MISSING_IDENTIFIER"),
        ("oidc.corp", "no email", "", "INVALID_IDENTIFIER"),
        ("corp", "", "", "INVALID_CREDENTIAL_OR_PROVIDER_ID"),
        ("password", "", "", "INVALID_CREDENTIAL_OR_PROVIDER_ID"),
        ("oidc.none", "", "", "MISSING_CONTINUE_URI"), ("oidc.none", "", "app", "INVALID_CONTINUE_URI"),
        ("oidc.none", "", "http://app.example/", "INVALID_CONTINUE_URI"),
        ("oidc.none", "", "http://localhost.example/", "INVALID_CONTINUE_URI"),
        ("oidc.none", "", "http://127.0.0.1:80@app.example/", "INVALID_CONTINUE_URI"),
        ("oidc.none", "", "https://app.example/#a", "INVALID_CONTINUE_URI"),
        ("oidc.none", "", "javascript:alert(1)", "INVALID_CONTINUE_URI"),
        ("oidc.none", "", "https://app.example/\n", "INVALID_CONTINUE_URI"),
        ("oidc.none", "", "app.example", "INVALID_CONTINUE_URI"), ("oidc.none", "", "1.b:/x", "INVALID_CONTINUE_URI"),
        ("oidc.none", "", "https://app.example/", "OPERATION_NOT_ALLOWED"),
        ("oidc.none", "", "http://localhost:8080/back", "OPERATION_NOT_ALLOWED"),
        ("oidc.none", "", "com.example.app:/back", "OPERATION_NOT_ALLOWED"),
        ("oidc.none", "", "https://other.example/", "UNAUTHORIZED_DOMAIN"),
        ("oidc.none", "", "com.example.other:/back", "UNAUTHORIZED_DOMAIN"),
        ("oidc.corp", "", "https://app.example/", ""),
    ])
    func `What is refused is refused in the documented order`(
        _ providerID: Text, _ identifier: Text, _ continueURI: Text, _ reason: String
    ) async throws {
        try await withProvider { _, client in
            let refused = failure {
                _ = try Self.ask(client, providerID, identifier: identifier, continueURI: continueURI)
            }
            #expect(refused.reason == reason)
        }
    }

    @Test func `Limits hold at the limit and not one past it`() async throws {
        try await withProvider { _, client in
            func reason(uri: Int = 20, scopes: [Text] = [], _ parameters: [AuthUriParameter] = []) -> String {
                let uri = Text("https://a.example/" + String(repeating: "x", count: uri - 18))
                return failure { _ = try Self.ask(client, continueURI: uri, scopes: scopes, parameters: parameters) }
                    .reason
            }
            func text(_ count: Int) -> Text { Text(String(repeating: "x", count: count)) }
            func scopes(_ count: Int) -> [Text] { (0..<count).map { Text("s\($0)") } }
            func parameters(_ count: Int) -> [AuthUriParameter] {
                (0..<count).map { AuthUriParameter(name: Text("p\($0)"), value: text(1_024)) }
            }
            #expect(reason(uri: 2_048) == "" && reason(uri: 2_049) == "INVALID_CONTINUE_URI")
            #expect(reason(scopes: scopes(20)) == "")
            #expect(reason(scopes: scopes(21)) == "INVALID_SCOPE")
            #expect(reason(scopes: [text(256)]) == "" && reason(scopes: [text(257)]) == "INVALID_SCOPE")
            for wrong in ["", "a b", "a\"", "a\\", "é"] as [Text] {
                #expect(reason(scopes: [wrong]) == "INVALID_SCOPE")
            }
            #expect(reason(parameters(20)) == "" && reason(parameters(21)) == "INVALID_CUSTOM_PARAMETER")
            #expect(reason([AuthUriParameter(name: text(64), value: "")]) == "")
            for wrong in [
                AuthUriParameter(name: text(65), value: ""), AuthUriParameter(name: "", value: "a"),
                AuthUriParameter(name: "a b", value: "a"), AuthUriParameter(name: "a", value: text(1_025)),
            ] { #expect(reason([wrong]) == "INVALID_CUSTOM_PARAMETER") }
            let twice = AuthUriParameter(name: "prompt", value: "login")
            #expect(reason([twice, twice]) == "INVALID_CUSTOM_PARAMETER")
        }
    }

    @Test(
        arguments: [
            "response_type", "response_mode", "client_id", "client_secret", "redirect_uri", "scope", "state", "nonce",
            "code_challenge", "code_challenge_method", "request", "request_uri", "registration",
        ] as [Text])
    func `A parameter that the server sets cannot be set`(_ name: Text) async throws {
        try await withProvider { _, client in
            let refused = failure {
                _ = try Self.ask(client, parameters: [AuthUriParameter(name: name, value: "x")])
            }
            #expect(refused.reason == "INVALID_CUSTOM_PARAMETER")
        }
    }

    @Test func `A provider that is off, down or without an authorization endpoint is said to be`() async throws {
        try await withProvider { provider, client in
            provider.misbehave(.down)
            expectRefusal("IDP_UNAVAILABLE") { _ = try Self.ask(client) }
            let _: ProvidersUpdateResponse = try client.client.call(
                "postern.v1.Providers/Update",
                ProvidersUpdateRequest(
                    provider: Provider(providerID: "oidc.corp"), updateMask: ProtobufFieldMask(paths: ["enabled"])))
            expectRefusal("OPERATION_NOT_ALLOWED") { _ = try Self.ask(client) }
        }
        try await withProvider { provider, client in
            provider.setHasAuthorizationEndpoint(false)
            let refused = failure { _ = try Self.ask(client) }
            #expect(refused.reason == "INVALID_IDP_CONFIGURATION")
            #expect(refused.metadata("detail") == "NO_AUTHORIZATION_ENDPOINT")
        }
    }

    @Test func `The sign-up toggle refuses the end of a first sign-in, not its beginning`() async throws {
        try await withProvider { provider, client in
            try client.setTenant(["client.permissions.disabled_user_signup"]) {
                $0.client = ClientConfig(permissions: ClientPermissions(disabledUserSignup: true))
            }
            let begun = try Self.ask(client)
            let code = try #require(provider.visit(begun.authURI, as: Self.ada)).code
            let refused = failure { _ = try Self.finish(client, begun, code: code) }
            #expect(refused.reason == "ADMIN_RESTRICTED_OPERATION")
        }
    }
}
