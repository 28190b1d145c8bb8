import Base
import Crypto
import JSON
import Messages
import Outbound
import Reactor
import Rules
import TestSupport
import Testing

@testable import Federation

@Suite struct CodeExchangeTests {
    private let verifier = Secret(String(repeating: "v", count: 43))

    private func proof(_ code: Secret, redirectURI: Text = "https://app/cb", verifier: Secret? = nil) -> ProviderProof {
        .code(code, redirectURI: redirectURI, verifier: verifier ?? self.verifier)
    }

    private func code(_ fixture: FederationFixture, nonce: Text = .empty) -> Secret {
        fixture.provider.code(.ann, redirectURI: "https://app/cb", verifier: verifier, nonce: nonce)
    }

    @Test(arguments: ["oidc.test", "google.com", "apple.com", "microsoft.com", "yahoo.com", "linkedin.com"] as [Text])
    func aCodeBecomesTheIdentityOfItsIDToken(_ providerID: Text) async throws {
        try await withFederation { fixture in
            let configuration = fixture.configuration(providerID)
            let profile = try await fixture.prove(proof(code(fixture, nonce: "n1")), nonce: "n1", configuration)
            #expect(profile.subject == "4711" && profile.email == "ann@gmail.com")
        }
    }

    @Test(arguments: ["github.com", "facebook.com", "twitter.com", "oidc.test"] as [Text])
    func withoutAnIDTokenTheUserIsAskedFor(_ providerID: Text) async throws {
        try await withFederation { fixture in
            fixture.provider.setHasIDTokens(false)
            let configuration = fixture.configuration(providerID)
            let profile = try await fixture.prove(proof(code(fixture)), configuration)
            #expect(profile.subject == "4711")
            // Without an ID token, nothing carries the nonce.
            let error = await fixture.error(proof(code(fixture)), nonce: "n1", configuration)
            #expect(error == .flawed(.wrongNonce))
        }
    }

    @Test func aCodeIsGoodOnce() async throws {
        try await withFederation { fixture in
            let code = code(fixture)
            #expect(await fixture.error(proof(code)) == nil)
            #expect(await fixture.error(proof(code)) == .rejected)
        }
    }

    @Test func aCodeNeedsItsVerifierAndRedirectURI() async throws {
        try await withFederation { fixture in
            let other = Secret(String(repeating: "w", count: 43))
            #expect(await fixture.error(proof(code(fixture), verifier: other)) == .rejected)
            #expect(await fixture.error(proof(code(fixture), verifier: .empty)) == .rejected)
            #expect(await fixture.error(proof(code(fixture), redirectURI: "https://evil/cb")) == .rejected)
        }
    }

    @Test func aVerifierHas43To128UnreservedCharacters() async throws {
        try await withFederation { fixture in
            let sent = fixture.provider.server
            for verifier in [String(repeating: "v", count: 42), String(repeating: "v", count: 129), "é" + verifierText]
            {
                #expect(await fixture.error(proof(Secret("c"), verifier: Secret(verifier))) == .rejected)
            }
            #expect(sent.requestCount("/token") == 0)
            _ = await fixture.error(proof(Secret("c"), verifier: Secret(String(repeating: "v", count: 128))))
            #expect(sent.requestCount("/token") == 1)
        }
    }

    private var verifierText: String { String(repeating: "v", count: 60) }

    @Test func aWrongClientSecretIsTheOperatorsFault() async throws {
        try await withFederation { fixture in
            let wrong = fixture.configuration { $0.clientSecret = Secret("wrong") }
            #expect(await fixture.error(proof(code(fixture)), wrong) == .misconfigured(.clientRefused))
        }
    }

    @Test func aCodeOfAnotherClientIsRejected() async throws {
        try await withFederation { fixture in
            let code = fixture.provider.code(.ann, clientID: "client-2")
            #expect(await fixture.error(proof(code, redirectURI: .empty, verifier: .empty)) == .rejected)
        }
    }

    @Test func theIDTokenOfAnExchangeIsVerifiedLikeAnyOther() async throws {
        try await withFederation { fixture in
            #expect(await fixture.error(proof(code(fixture, nonce: "n1")), nonce: "n2") == .flawed(.wrongNonce))
            // Nobody else had this token, so a nonce in the form of a hash may be the nonce itself.
            let digits = Hex.encode(Digest.sha256(Array("n1".utf8)))
            for nonce in [digits, "n1"] {
                #expect(await fixture.error(proof(code(fixture, nonce: digits)), nonce: nonce) == nil, "\(nonce)")
            }
            let honest = fixture.provider.idToken(.ann)
            #expect(await fixture.error(.idToken(honest)) == nil)
            // The keys that the provider published before are not the ones that it signs with now.
            fixture.provider.setKeys([newKey(.es256)])
            #expect(await fixture.error(proof(code(fixture))) == .flawed(.unknownKey))
        }
    }

    @Test func aTokenEndpointThatFailsIsAnOutage() async throws {
        try await withFederation { fixture in
            let configuration = fixture.configuration("google.com")
            for (misbehaviour, outage) in [
                (.down, .badAnswer), (.flood, .tooLarge), (.redirect, .redirected), (.brokenJSON, .badAnswer),
                (.html, .badAnswer), (.duplicateMembers, .badAnswer), (.nothing, .badAnswer),
            ] as [(FakeIdentityProvider.Misbehaviour, FederationError.Outage)] {
                let code = code(fixture)
                fixture.provider.misbehave(misbehaviour)
                #expect(await fixture.error(proof(code), configuration) == .unavailable(outage), "\(misbehaviour)")
                fixture.provider.misbehave(.none)
            }
        }
    }

    // MARK: What an answer may cost

    private func server(_ status: Int, _ body: [UInt8]) -> FakeHTTPServer {
        FakeHTTPServer { _ in
            .response(HTTPResponse(status: status, contentType: "application/json", body: body))
        }
    }

    @Test(
        arguments: [
            (65_536, .rejected), (65_537, .unavailable(.tooLarge)), (262_144, .unavailable(.tooLarge)),
        ] as [(Int, FederationError)])
    func anAnswerHas64KiBAtMost(_ byteCount: Int, _ expected: FederationError) async throws {
        let refusal = [UInt8](#"{"error":"invalid_grant"}"#.utf8)
        let server = server(400, refusal + [UInt8](repeating: 0x20, count: byteCount - refusal.count))
        defer { server.close() }
        try await withFederation { fixture in
            let configuration = fixture.configuration {
                $0.endpoints = ProviderEndpoints(token: Text("\(server.url)/t"))
            }
            #expect(await fixture.error(proof(code(fixture)), configuration) == expected)
        }
    }

    /// The answer is read where its time is measured: on a thread for requests, and once.
    @Test func readingAnAnswerTakesFromTheTimeOfItsTenant() async throws {
        let objects = [String](repeating: #"{"b":0}"#, count: 7_000).joined(separator: ",")
        let server = server(400, [UInt8](#"{"error":"invalid_grant","a":[\#(objects)]}"#.utf8))
        defer { server.close() }
        try await withFederation(keyTime: .microseconds(1)) { fixture in
            func error(_ tenantID: Text) async -> FederationError? {
                let configuration = fixture.configuration("google.com", tenantID: tenantID) {
                    $0.endpoints?.token = Text("\(server.url)/t")
                }
                return await fixture.error(proof(code(fixture)), configuration)
            }
            #expect(await error("t") == .rejected)
            #expect(await error("t") == .overloaded)
            #expect(server.requestCount("/t") == 1)
            #expect(await error("u") == .rejected)
            fixture.clock.advance(by: .seconds(10))
            #expect(await error("t") == .rejected)
            #expect(fixture.client.refusedKeyTimes.value == 1)
        }
    }

    @Test func tokensAreBounded() throws {
        func tokens(_ body: String) throws(FederationError) -> TokenAnswer.Tokens {
            try TokenAnswer(HTTPAnswer(status: 200, body: [UInt8](body.utf8)), tokenByteCountMax: 4).tokens
        }
        let both = try tokens(#"{"id_token":"abcd","access_token":"efgh"}"#)
        #expect(both.idToken == Secret("abcd") && both.accessToken == Secret("efgh"))
        let short = try tokens(#"{"id_token":"abcd","access_token":"efghi"}"#)
        #expect(short.idToken == Secret("abcd") && short.accessToken == nil)
        #expect(throws: FederationError.flawed(.malformed)) {
            try tokens(#"{"id_token":"abcde","access_token":"efgh"}"#)
        }
    }

    // MARK: Apple

    @Test func applesClientSecretIsSignedWithTheDevelopersKey() async throws {
        try await withFederation { fixture in
            let key = newKey(.es256)
            let pem = key.exportDER().withBytes { der -> Secret in
                let text = Base64.standard.encodeToString([UInt8](der))
                let lines = stride(from: 0, to: text.count, by: 64).map { start in
                    String(text.dropFirst(start).prefix(64))
                }
                return Secret(
                    "-----BEGIN PRIVATE KEY-----\n\(lines.joined(separator: "\n"))\n-----END PRIVATE KEY-----\n")
            }
            let configuration = fixture.configuration("apple.com") {
                $0.apple = AppleKey(teamID: "TEAM", keyID: "KEY")
                $0.clientSecret = pem
            }
            let secret = try #require(try AppleClientSecret.make(configuration, now: fixture.now))
            let parts = secret.withBytes { [UInt8]($0) }.split(separator: UInt8(ascii: ".")).map(Array.init)
            let header = try JSONValue(parsing: try #require(Base64.url.decode(parts[0])))
            let claims = try JSONValue(parsing: try #require(Base64.url.decode(parts[1])))
            #expect(header == ["alg": "ES256", "kid": "KEY"])
            #expect(
                claims == [
                    "iss": "TEAM", "iat": .integer(fixture.now.seconds), "exp": .integer(fixture.now.seconds + 300),
                    "aud": "https://appleid.apple.com", "sub": "client-1",
                ])
            let message = parts[0] + [UInt8(ascii: ".")] + parts[1]
            #expect(key.publicKey.verify(signature: try #require(Base64.url.decode(parts[2])), over: message))
        }
    }

    @Test(arguments: [
        "", "x", "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
        "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----",
    ])
    func whatIsNoPrivateKeyIsTheOperatorsFault(_ pem: String) async throws {
        try await withFederation { fixture in
            let configuration = fixture.configuration("apple.com") {
                $0.apple = AppleKey(teamID: "TEAM", keyID: "KEY")
                $0.clientSecret = Secret(pem)
            }
            #expect(await fixture.error(proof(code(fixture)), configuration) == .misconfigured(.badPrivateKey))
        }
    }
}
