import Base
import Identity
import Messages
import Synchronization
import TestSupport
import Testing

/// Signing in with a provider that really runs: from the credential to the account, and what is told when it fails.
@Suite struct ProviderSignInTests {
    private typealias User = FakeIdentityProvider.User

    private struct Setup {
        let server: TestServer
        let fake: FakeIdentityProvider
        let client: RawClient

        func create(_ id: Text, _ change: (inout Provider) -> Void = { _ in }) throws {
            var provider = fake.provider(id)
            change(&provider)
            let _: ProvidersCreateResponse = try client.call(
                "postern.v1.Providers/Create", ProvidersCreateRequest(provider: provider))
        }

        func signIn(_ credential: IdpCredential) throws -> AccountsSignInWithIdpResponse {
            try client.call("postern.v1.Accounts/SignInWithIdp", AccountsSignInWithIdpRequest(credential: credential))
        }

        func signIn(_ id: Text, _ token: Secret) throws -> AccountsSignInWithIdpResponse {
            try signIn(IdpCredential(providerID: id, credential: .providerIDToken(token)))
        }
    }

    private func withSetup(log: Log = .silent, _ body: (Setup) throws -> Void) async throws {
        let fake = FakeIdentityProvider(clock: ManualClock().clock)
        defer { fake.close() }
        try await withServer(log: log) { server in
            try body(Setup(server: server, fake: fake, client: try server.connect()))
        }
    }

    private let ann = User("4711", email: "ann@gmail.com", name: "Ann", picture: "https://img.example/a.png")

    @Test func anIDTokenMakesAnAccountAndThenSignsInToIt() async throws {
        try await withSetup { setup in
            try setup.create("oidc.corp")
            let first = try setup.signIn("oidc.corp", setup.fake.idToken(ann))
            #expect(first.isNewUser && first.user?.displayName == "Ann" && first.user?.emailVerified == false)
            let again = try setup.signIn("oidc.corp", setup.fake.idToken(ann))
            #expect(!again.isNewUser && again.user?.uid == first.user?.uid)
            #expect(again.provider?.rawID == "4711" && again.provider?.providerID == "oidc.corp")
        }
    }

    @Test func anAccessTokenAndACodeSignInToTheSameAccount() async throws {
        try await withSetup { setup in
            try setup.create("google.com") {
                $0.trust = ProviderTrust(level: .domains, domains: ["gmail.com"])
            }
            let access = try setup.signIn(
                IdpCredential(
                    providerID: "google.com", credential: .providerAccessToken(setup.fake.accessToken(ann))))
            #expect(access.isNewUser && access.user?.emailVerified == true)
            let verifier = Secret(String(repeating: "v", count: 64))
            let code = setup.fake.code(ann, redirectURI: "https://app/cb", verifier: verifier, nonce: "n1")
            let exchanged = try setup.signIn(
                IdpCredential(
                    providerID: "google.com", credential: .authorizationCode(code), nonce: "n1",
                    redirectURI: "https://app/cb", codeVerifier: verifier))
            #expect(exchanged.user?.uid == access.user?.uid)
        }
    }

    @Test func whatAProfileCannotHoldIsLeftOut() async throws {
        try await withSetup { setup in
            try setup.create("oidc.corp") { $0.trust = ProviderTrust(level: .always) }
            let odd = User(
                "1", email: "not an address@x", name: Text("a\u{202E}b"), picture: "javascript:alert(1)")
            let signedIn = try setup.signIn("oidc.corp", setup.fake.idToken(odd))
            let user = try #require(signedIn.user)
            #expect(user.email.isEmpty && !user.emailVerified && user.displayName.isEmpty && user.photoURL.isEmpty)
            let long = User("2", name: Text(String(repeating: "n", count: 257)))
            #expect(try setup.signIn("oidc.corp", setup.fake.idToken(long)).user?.displayName == "")
        }
    }

    @Test func aProviderThatIsNotEnabledIsNotAsked() async throws {
        try await withSetup { setup in
            let token = setup.fake.idToken(ann)
            let absent = failure { _ = try setup.signIn("oidc.corp", token) }
            #expect(absent.reason == "OPERATION_NOT_ALLOWED" && absent.code == .permissionDenied)
            try setup.create("oidc.corp")
            var change = setup.fake.provider("oidc.corp")
            change.enabled = false
            let _: ProvidersUpdateResponse = try setup.client.call(
                "postern.v1.Providers/Update",
                ProvidersUpdateRequest(provider: change, updateMask: ProtobufFieldMask(paths: ["enabled"])))
            expectRefusal("OPERATION_NOT_ALLOWED") { _ = try setup.signIn("oidc.corp", token) }
            #expect(setup.fake.server.connectionCount == 0)
        }
    }

    /// The provider's current row counts, whatever was made of an earlier one.
    @Test func aChangedProviderCountsFromTheNextSignInOn() async throws {
        try await withSetup { setup in
            try setup.create("oidc.corp")
            func update(_ field: String, _ change: (inout Provider) -> Void) throws {
                var provider = setup.fake.provider("oidc.corp")
                change(&provider)
                let _: ProvidersUpdateResponse = try setup.client.call(
                    "postern.v1.Providers/Update",
                    ProvidersUpdateRequest(
                        provider: provider, updateMask: ProtobufFieldMask(paths: [Text(field)])))
            }
            func refusal(_ credential: () -> IdpCredential) -> String? {
                failure { _ = try setup.signIn(credential()) }.metadata.first { $0.key == "detail" }?.value
            }
            let verifier = Secret(String(repeating: "v", count: 64))
            func token() -> IdpCredential {
                IdpCredential(providerID: "oidc.corp", credential: .providerIDToken(setup.fake.idToken(ann)))
            }
            func code() -> IdpCredential {
                let code = setup.fake.code(ann, redirectURI: "https://app/cb", verifier: verifier)
                return IdpCredential(
                    providerID: "oidc.corp", credential: .authorizationCode(code), redirectURI: "https://app/cb",
                    codeVerifier: verifier)
            }
            for _ in 0..<2 {
                _ = try setup.signIn(token())
                _ = try setup.signIn(code())
                try update("client_id") { $0.clientID = "client-2" }
                #expect(refusal(token) == "WRONG_AUDIENCE")
                try update("client_id") { _ in }
                try update("client_secret") { $0.clientSecret = Secret("secret-2") }
                #expect(refusal(code) == "CLIENT_REFUSED")
                _ = try setup.signIn(token())
                try update("client_secret") { _ in }
            }
        }
    }

    @Test(arguments: ["", "google", "saml.x", "password", "oidc."] as [Text])
    func whatIsNoProviderIDIsRefused(_ id: Text) async throws {
        try await withSetup { setup in
            let refused = failure { _ = try setup.signIn(id, Secret("t")) }
            #expect(refused.reason == "INVALID_CREDENTIAL_OR_PROVIDER_ID" && refused.code == .invalidArgument)
        }
    }

    @Test func aCredentialThatProvesNothingSaysWhyWithoutTheProvidersWords() async throws {
        try await withSetup { setup in
            try setup.create("oidc.corp")
            let other = setup.fake.idToken(ann, audience: "client-2")
            let refused = failure { _ = try setup.signIn("oidc.corp", other) }
            #expect(refused.reason == "INVALID_IDP_RESPONSE" && refused.code == .invalidArgument)
            #expect(refused.metadata("detail") == "WRONG_AUDIENCE")
            #expect(refused.metadata("provider_id") == "oidc.corp")
            let malformed = failure { _ = try setup.signIn("oidc.corp", Secret("x")) }
            #expect(malformed.metadata("detail") == "MALFORMED")
        }
    }

    @Test func aProviderThatIsDownIsUnavailable() async throws {
        try await withSetup { setup in
            try setup.create("oidc.corp")
            setup.fake.misbehave(.down)
            let refused = failure { _ = try setup.signIn("oidc.corp", setup.fake.idToken(ann)) }
            #expect(refused.reason == "IDP_UNAVAILABLE" && refused.code == .unavailable)
            #expect(refused.metadata("detail") == "BAD_ANSWER" && refused.retryAfter == .seconds(10))
        }
    }

    @Test func aConfigurationThatDoesNotWorkIsTheAdminsToMend() async throws {
        try await withSetup { setup in
            try setup.create("oidc.corp") { $0.clientSecret = Secret("wrong") }
            let credential = IdpCredential(
                providerID: "oidc.corp", credential: .authorizationCode(setup.fake.code(ann)))
            let refused = failure { _ = try setup.signIn(credential) }
            #expect(refused.reason == "INVALID_IDP_CONFIGURATION" && refused.code == .failedPrecondition)
            #expect(refused.metadata("detail") == "CLIENT_REFUSED")
        }
    }

    @Test func anotherTenantsProviderIsNotThisOnes() async throws {
        try await withSetup { setup in
            try setup.create("oidc.corp")
            let _: TenantsCreateResponse = try setup.client.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
            let refused = failure {
                let _: AccountsSignInWithIdpResponse = try setup.client.call(
                    "postern.v1.Accounts/SignInWithIdp",
                    AccountsSignInWithIdpRequest(
                        tenantID: "acme",
                        credential: IdpCredential(
                            providerID: "oidc.corp", credential: .providerIDToken(setup.fake.idToken(ann)))))
            }
            #expect(refused.reason == "OPERATION_NOT_ALLOWED")
        }
    }

    @Test func noTokenCodeOrSecretIsInALog() async throws {
        let lines = LogLines()
        try await withSetup(log: Log(level: .debug, sink: { lines.append($0) })) { setup in
            try setup.create("oidc.corp") { $0.clientSecret = Secret("marker-secret") }
            for credential in [
                IdpCredential.Credential.providerIDToken(Secret("marker-id-token")),
                .providerAccessToken(Secret("marker-access-token")), .authorizationCode(Secret("marker-code")),
            ] {
                let refused = failure {
                    _ = try setup.signIn(
                        IdpCredential(
                            providerID: "oidc.corp", credential: credential, codeVerifier: Secret("marker-verifier")))
                }
                #expect(!"\(refused)".contains("marker") && !refused.reason.isEmpty)
            }
        }
        #expect(lines.text.contains("call failed") && !lines.text.contains("marker"))
    }
}

private final class LogLines: Sendable {
    private let bytes = Mutex<[UInt8]>([])

    var text: String { String(decoding: bytes.withLock { $0 }, as: UTF8.self) }

    func append(_ line: [UInt8]) { bytes.withLock { $0 += line } }
}
