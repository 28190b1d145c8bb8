import Base
import Federation
import JSON
import Messages
import Reactor
import Rules
import TestSupport
import Testing

/// How Postern proves itself at a provider's endpoints: HTTP Basic authentication, or the secret in the form.
@Suite struct ClientAuthenticationTests {
    private let discovery = "/.well-known/openid-configuration"
    private let verifier = Secret(String(repeating: "v", count: 43))

    private func proof(_ fixture: FederationFixture) -> ProviderProof {
        let code = fixture.provider.code(.ann, redirectURI: "https://app/cb", verifier: verifier)
        return .code(code, redirectURI: "https://app/cb", verifier: verifier)
    }

    /// A configuration that names every endpoint.
    private func everyEndpoint(_ fixture: FederationFixture) -> ProviderConfiguration {
        let url = fixture.provider.server.url
        return fixture.configuration {
            $0.endpoints = ProviderEndpoints(
                jwks: Text("\(url)/jwks"), token: Text("\(url)/token"), userInfo: Text("\(url)/userinfo"),
                tokenCheck: Text("\(url)/introspect"), authorization: Text("\(url)/authorize"))
        }
    }

    private func report(_ fixture: FederationFixture, _ configuration: ProviderConfiguration) async throws -> [String] {
        let deadline = Instant.now.advanced(by: .seconds(20))
        return try await fixture.client.test(configuration, now: fixture.now, deadline: deadline).map { step in
            "\(step.name) \(step.result)"
        }
    }

    /// RFC 6749 §2.3.1: every server supports Basic authentication.
    @Test func `Without a discovery document, codes and access tokens need only the endpoints`() async throws {
        try await withFederation { fixture in
            fixture.provider.setHasDiscovery(false)
            fixture.provider.setTakesSecrets(posted: false, basic: true)
            let configuration = everyEndpoint(fixture)
            for _ in 0..<2 {
                #expect(await fixture.error(proof(fixture), configuration) == nil)
                let token = fixture.provider.accessToken(.ann)
                #expect(await fixture.error(.accessToken(token), configuration) == nil)
            }
            #expect(fixture.provider.server.requestCount(discovery) == 1)
        }
    }

    @Test func `A discovery document of another issuer says nothing about how a client authenticates`() async throws {
        try await withFederation { fixture in
            fixture.provider.setDiscoveryIssuer("https://evil.example")
            fixture.provider.setTakesSecrets(posted: false, basic: true)
            #expect(await fixture.error(proof(fixture), everyEndpoint(fixture)) == nil)
        }
    }

    @Test func `What the document is needed for fails without it`() async throws {
        try await withFederation { fixture in
            fixture.provider.setHasDiscovery(false)
            #expect(await fixture.error(proof(fixture)) == .unavailable(.badAnswer))
        }
    }

    /// (methods of the token endpoint, methods of the introspection endpoint, whether the secret goes into the form)
    @Test(
        arguments: [
            (["client_secret_basic", "client_secret_post"], ["client_secret_basic"], false),
            (["client_secret_basic"], ["client_secret_post", "client_secret_basic"], true),
            (["client_secret_post"], nil, true), (["client_secret_basic"], nil, false), (nil, nil, false),
        ] as [(JSONValue?, JSONValue?, Bool)])
    func `The token check authenticates as the discovery document says`(
        _ tokenMethods: JSONValue?, _ introspectionMethods: JSONValue?, _ isPosted: Bool
    ) async throws {
        try await withFederation { fixture in
            fixture.provider.setDiscovery("token_endpoint_auth_methods_supported", tokenMethods)
            fixture.provider.setDiscovery("introspection_endpoint_auth_methods_supported", introspectionMethods)
            fixture.provider.setTakesSecrets(posted: isPosted, basic: !isPosted)
            let token = fixture.provider.accessToken(.ann)
            #expect(await fixture.error(.accessToken(token)) == nil)
            let steps = try await report(fixture, fixture.configuration())
            #expect(steps.contains("token_check passed"))
        }
    }

    // MARK: Test

    @Test func `A test says whether the discovery document was needed`() async throws {
        try await withFederation { fixture in
            let configuration = everyEndpoint(fixture)
            let steps = try await report(fixture, configuration)
            #expect(steps.first == "discovery passed")
        }
        try await withFederation { fixture in
            fixture.provider.setHasDiscovery(false)
            let steps = try await report(fixture, everyEndpoint(fixture))
            #expect(
                steps == [
                    "discovery skipped", "jwks passed", "user_info passed", "token_check passed",
                    "token_exchange passed",
                ])
            fixture.clock.advance(by: .seconds(10))
            let later = try await report(fixture, fixture.configuration())
            #expect(later.first == "discovery failed")
        }
    }

    /// (status, body, outcome of the step token_check). A wrong URL never passes.
    @Test(arguments: [
        (200, #"{"active":false}"#, "passed"), (200, #"{"active":true,"client_id":"client-1"}"#, "failed"),
        (200, "{}", "failed"), (200, "<html>", "failed"), (400, #"{"error":"invalid_request"}"#, "failed"),
        (401, #"{"error":"invalid_client"}"#, "failed"), (404, #"{"active":false}"#, "failed"),
        (405, "", "failed"), (503, "", "failed"),
    ])
    func `Only an endpoint that answers as one passes the token check`(
        _ status: Int, _ body: String, _ expected: String
    ) async throws {
        let other = FakeHTTPServer { _ in
            .response(HTTPResponse(status: status, contentType: "application/json", body: [UInt8](body.utf8)))
        }
        defer { other.close() }
        try await withFederation { fixture in
            let configuration = fixture.configuration {
                $0.endpoints = ProviderEndpoints(tokenCheck: Text("\(other.url)/check"))
            }
            let steps = try await report(fixture, configuration)
            #expect(steps.contains("token_check \(expected)"))
        }
    }

    /// (provider, whether its secret is right, outcome of the step token_check)
    @Test(
        arguments: [
            ("google.com", true, "passed"), ("facebook.com", true, "passed"), ("github.com", true, "passed"),
            ("linkedin.com", true, "passed"), ("facebook.com", false, "failed"), ("github.com", false, "failed"),
            ("linkedin.com", false, "failed"), ("yahoo.com", true, "skipped"), ("apple.com", true, "skipped"),
        ] as [(Text, Bool, String)])
    func `Each kind of token check is tested`(_ providerID: Text, _ isRight: Bool, _ expected: String) async throws {
        try await withFederation { fixture in
            let configuration = fixture.configuration(providerID) {
                if !isRight { $0.clientSecret = Secret("wrong") }
            }
            let steps = try await report(fixture, configuration)
            #expect(steps.contains("token_check \(expected)"))
        }
    }

    @Test func `Without a client secret nothing can be checked by introspection`() async throws {
        try await withFederation { fixture in
            let bare = fixture.configuration { $0.clientSecret = .empty }
            let steps = try await report(fixture, bare)
            #expect(steps.contains("token_check skipped") && steps.contains("token_exchange skipped"))
        }
    }
}
