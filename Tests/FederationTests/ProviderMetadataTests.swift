import Base
import Crypto
import Federation
import Messages
import Reactor
import TestSupport
import Testing

/// Key sets and discovery documents: fetched once, renewed when they must be, still used while the provider is down.
@Suite struct ProviderMetadataTests {
    @Test func manySignInsFetchTheKeysOnce() async throws {
        try await withFederation { fixture in
            let token = fixture.provider.idToken(.ann)
            for tenantID: Text in ["a", "b", "a"] {
                let configuration = fixture.configuration(tenantID: tenantID)
                #expect(await fixture.error(.idToken(token), configuration) == nil)
            }
            #expect(fixture.provider.jwksRequestCount == 1)
            #expect(fixture.client.cachedProviderCount == 1)
        }
    }

    @Test func whoeverComesMeanwhileWaitsForTheOneFetch() async throws {
        try await withFederation { fixture in
            let token = fixture.provider.idToken(.ann)
            let tasks = (0..<20).map { _ in Task { await fixture.error(.idToken(token)) } }
            for task in tasks { #expect(await task.value == nil) }
            #expect(fixture.provider.jwksRequestCount == 1)
        }
    }

    @Test func nothingIsFetchedBeforeItIsUsed() async throws {
        try await withFederation { fixture in
            for _ in 0..<100 { _ = fixture.configuration() }
            #expect(fixture.client.cachedProviderCount == 0)
            #expect(fixture.provider.server.connectionCount == 0)
        }
    }

    @Test func aNewKeyIsFoundAtOnceButNotAskedForMoreOftenThanEveryTenSeconds() async throws {
        try await withFederation { fixture in
            #expect(await fixture.error(.idToken(fixture.provider.idToken(.ann))) == nil)
            fixture.clock.advance(by: .seconds(10))
            fixture.provider.setKeys([newKey(.es256)])
            #expect(await fixture.error(.idToken(fixture.provider.idToken(.ann))) == nil)
            #expect(fixture.provider.jwksRequestCount == 2)
            let unknown = fixture.provider.sign(fixture.provider.claims(.ann), key: newKey(.es256))
            fixture.clock.advance(by: .milliseconds(9_999))
            for _ in 0..<50 { #expect(await fixture.error(.idToken(unknown)) == .flawed(.unknownKey)) }
            #expect(fixture.provider.jwksRequestCount == 2)
            fixture.clock.advance(by: .milliseconds(1))
            for _ in 0..<50 { #expect(await fixture.error(.idToken(unknown)) == .flawed(.unknownKey)) }
            #expect(fixture.provider.jwksRequestCount == 3)
        }
    }

    @Test func aNewKeyIsFoundForTokensWithoutAKeyID() async throws {
        try await withFederation { fixture in
            func token() -> Secret {
                fixture.provider.sign(fixture.provider.claims(.ann), header: [("kid", nil)])
            }
            fixture.provider.setKeys([newKey(.es256)])
            #expect(await fixture.error(.idToken(token())) == nil)
            fixture.clock.advance(by: .seconds(10))
            fixture.provider.setKeys([newKey(.es256)])
            #expect(await fixture.error(.idToken(token())) == nil)
        }
    }

    @Test(
        arguments: [
            ("max-age=600", 600), ("max-age=1", 60), ("no-store", 60), ("max-age=99999999", 86_400), ("public", 3_600),
            ("max-age=x", 3_600), ("max-age=99999999999999999999", 86_400),
        ] as [(String, Int64)])
    func theKeysAreKeptAsLongAsTheProviderSaysWithinBounds(_ cacheControl: String, _ seconds: Int64) async throws {
        try await withFederation { fixture in
            fixture.provider.setCacheControl(cacheControl)
            func signIn() async { #expect(await fixture.error(.idToken(fixture.provider.idToken(.ann))) == nil) }
            await signIn()
            fixture.clock.advance(by: .seconds(seconds) - .milliseconds(1))
            await signIn()
            #expect(fixture.provider.jwksRequestCount == 1)
            fixture.clock.advance(by: .milliseconds(1))
            await signIn()
            #expect(fixture.provider.jwksRequestCount == 2)
        }
    }

    @Test(
        arguments: FakeIdentityProvider.Misbehaviour.allCases.filter { $0 != .none && $0 != .silent && $0 != .nothing })
    func oldKeysServeForADayWhileTheProviderFails(_ misbehaviour: FakeIdentityProvider.Misbehaviour) async throws {
        try await withFederation { fixture in
            fixture.provider.setCacheControl("max-age=60")
            #expect(await fixture.error(.idToken(fixture.provider.idToken(.ann))) == nil)
            fixture.provider.misbehave(misbehaviour)
            fixture.clock.advance(by: .hours(23))
            for _ in 0..<5 { #expect(await fixture.error(.idToken(fixture.provider.idToken(.ann))) == nil) }
            // After one attempt, no other follows for ten seconds.
            #expect(fixture.provider.jwksRequestCount + fixture.provider.server.requestCount(discovery) <= 4)
            fixture.clock.advance(by: .hours(1))
            let error = await fixture.error(.idToken(fixture.provider.idToken(.ann)))
            guard case .unavailable = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            fixture.provider.misbehave(.none)
            fixture.clock.advance(by: .seconds(10))
            #expect(await fixture.error(.idToken(fixture.provider.idToken(.ann))) == nil)
        }
    }

    private let discovery = "/.well-known/openid-configuration"

    @Test func aProviderThatIsDownIsNotAskedByEverybody() async throws {
        try await withFederation { fixture in
            fixture.provider.misbehave(.down)
            for _ in 0..<20 {
                #expect(await fixture.error(.idToken(fixture.provider.idToken(.ann))) == .unavailable(.badAnswer))
            }
            #expect(fixture.provider.server.requestCount(discovery) == 1)
            fixture.provider.misbehave(.none)
            fixture.clock.advance(by: .seconds(10))
            #expect(await fixture.error(.idToken(fixture.provider.idToken(.ann))) == nil)
        }
    }

    @Test func nobodyListeningIsAnOutage() async throws {
        try await withFederation { fixture in
            let token = fixture.provider.idToken(.ann)
            fixture.provider.close()
            #expect(await fixture.error(.idToken(token)) == .unavailable(.unreachable))
        }
    }

    @Test func aSilentProviderIsGivenUpWithinItsTimeLimit() async throws {
        try await withFederation { fixture in
            let token = fixture.provider.idToken(.ann)
            fixture.provider.misbehave(.silent)
            #expect(await fixture.error(.idToken(token)) == .unavailable(.slow))
        }
    }

    /// The URL that a document names is a key in the cache that all tenants share.
    @Test func whereKeysAreSaidToBeMustBeAURLThatMayBeAsked() async throws {
        let huge = Text("http://127.0.0.1/" + String(repeating: "k", count: 200_000))
        for (location, fault) in [
            ("", .noKeys), ("nowhere", .badEndpoint), ("ftp://127.0.0.1/jwks", .badEndpoint), (huge, .badEndpoint),
        ] as [(Text, FederationError.Fault)] {
            try await withFederation { fixture in
                fixture.provider.setDiscoveryJWKS(location)
                let token = fixture.provider.idToken(.ann)
                for _ in 0..<2 { #expect(await fixture.error(.idToken(token)) == .misconfigured(fault)) }
                #expect(fixture.provider.jwksRequestCount == 0)
                #expect(fixture.provider.server.requestCount(discovery) == 1)
            }
        }
        try await withFederation { fixture in
            let known = fixture.configuration { $0.allowHTTPLoopback = false }
            #expect(
                await fixture.error(.idToken(fixture.provider.idToken(.ann)), known)
                    == .misconfigured(.badEndpoint))
            #expect(fixture.provider.server.connectionCount == 0)
        }
    }

    @Test func aSecretThatCannotBeOpenedIsNone() async throws {
        struct Broken: Error {}
        try await withFederation { fixture in
            let sound = fixture.configuration()
            let unopenable = ProviderConfiguration(
                tenantID: "t", provider: sound.provider, hasClientSecret: true,
                openClientSecret: { throw Broken() })
            let broken = try #require(unopenable)
            let verifier = Secret(String(repeating: "v", count: 64))
            let code = fixture.provider.code(.ann, redirectURI: "https://app/cb", verifier: verifier)
            let proof = ProviderProof.code(code, redirectURI: "https://app/cb", verifier: verifier)
            #expect(await fixture.error(proof, broken) == .misconfigured(.noClientSecret))
            #expect(await fixture.error(.idToken(fixture.provider.idToken(.ann)), broken) == nil)
            let steps = try await fixture.client.test(
                broken, now: fixture.now, deadline: .now.advanced(by: .seconds(20)))
            #expect(steps.last?.name == "token_exchange" && steps.last?.result == .failed)
            #expect(await fixture.error(proof, sound) == nil)
        }
    }

    @Test func aDocumentOfAnotherIssuerIsNotUsed() async throws {
        try await withFederation { fixture in
            fixture.provider.setDiscoveryIssuer("https://evil.example")
            let token = fixture.provider.idToken(.ann)
            #expect(await fixture.error(.idToken(token)) == .misconfigured(.otherIssuer))
            #expect(fixture.provider.jwksRequestCount == 0)
        }
    }

    @Test func whatOnePolicyMayReachIsNotHandedToAnother() async throws {
        try await withFederation { fixture in
            let token = fixture.provider.idToken(.ann)
            #expect(await fixture.error(.idToken(token)) == nil)
            let strict = fixture.configuration { $0.allowHTTPLoopback = false }
            #expect(await fixture.error(.idToken(token), strict) == .misconfigured(.badEndpoint))
        }
    }

    @Test func aSetWithoutUsableKeysVerifiesNothing() async throws {
        try await withFederation { fixture in
            let token = fixture.provider.idToken(.ann)
            fixture.provider.setKeys([])
            #expect(await fixture.error(.idToken(token)) == .flawed(.unknownKey))
        }
    }

    @Test func manyProvidersAreKeptWithinABound() async throws {
        try await withFederation { fixture in
            let token = fixture.provider.idToken(.ann)
            for index in 0..<300 {
                let configuration = fixture.configuration {
                    $0.endpoints = ProviderEndpoints(jwks: Text("\(fixture.provider.server.url)/jwks?\(index)"))
                }
                #expect(await fixture.error(.idToken(token), configuration) == nil)
            }
            #expect(fixture.client.cachedProviderCount == 256)
        }
    }

    // MARK: Test

    private func report(_ fixture: FederationFixture, _ configuration: ProviderConfiguration) async throws -> [String] {
        let deadline = Instant.now.advanced(by: .seconds(20))
        return try await fixture.client.test(configuration, now: fixture.now, deadline: deadline).map { step in
            "\(step.name) \(step.result)"
        }
    }

    /// (status, body, outcome of the step user_info, outcome of the step token_exchange). A wrong URL never passes.
    @Test(arguments: [
        (200, "{}", "failed", "failed"), (200, "<html>", "failed", "failed"), (204, "", "failed", "failed"),
        (200, #"{"sub":"1"}"#, "failed", "failed"), (200, #"{"access_token":"a"}"#, "failed", "failed"),
        // GitHub's token endpoint answers a wrong code with 200.
        (200, #"{"error":"bad_verification_code"}"#, "failed", "passed"),
        (400, #"{"error":"invalid_grant"}"#, "passed", "passed"), (400, "<html>", "passed", "failed"),
        (400, #"{"error":"invalid_client"}"#, "passed", "failed"), (401, "{}", "passed", "failed"),
        (403, #"{"error":"access_denied"}"#, "passed", "passed"), (403, "", "passed", "failed"),
        (404, "", "failed", "failed"), (404, "<html>", "failed", "failed"), (404, "{}", "failed", "failed"),
        (404, #"{"error":"Not Found"}"#, "failed", "failed"), (405, "", "failed", "failed"),
        (410, "", "failed", "failed"), (418, "", "failed", "failed"), (429, "", "failed", "failed"),
        (500, #"{"error":"server_error"}"#, "failed", "failed"), (503, "", "failed", "failed"),
    ])
    func onlyAnEndpointThatAnswersAsOnePasses(
        _ status: Int, _ body: String, _ userInfo: String, _ exchange: String
    ) async throws {
        let other = FakeHTTPServer { _ in
            .response(HTTPResponse(status: status, contentType: "application/json", body: [UInt8](body.utf8)))
        }
        defer { other.close() }
        try await withFederation { fixture in
            let configuration = fixture.configuration {
                $0.endpoints = ProviderEndpoints(token: Text("\(other.url)/t"), userInfo: Text("\(other.url)/u"))
            }
            let steps = try await report(fixture, configuration)
            let expected = ["user_info \(userInfo)", "token_check passed", "token_exchange \(exchange)"]
            #expect(steps == ["discovery passed", "jwks passed"] + expected)
        }
    }

    @Test func aTestReportsEachStep() async throws {
        try await withFederation { fixture in
            #expect(
                try await report(fixture, fixture.configuration()) == [
                    "discovery passed", "jwks passed", "user_info passed", "token_check passed",
                    "token_exchange passed",
                ])
            #expect(
                try await report(fixture, fixture.configuration("github.com")) == [
                    "discovery skipped", "jwks skipped", "user_info passed", "token_check passed",
                    "token_exchange passed",
                ])
            let wrong = fixture.configuration { $0.clientSecret = Secret("wrong") }
            #expect(try await report(fixture, wrong).last == "token_exchange failed")
            let none = fixture.configuration { $0.clientSecret = .empty }
            #expect(try await report(fixture, none).last == "token_exchange skipped")
            fixture.provider.close()
            fixture.clock.advance(by: .days(2))
            let down = try await report(fixture, fixture.configuration())
            #expect(!down.isEmpty && down.allSatisfy { $0.hasSuffix("failed") })
        }
    }
}
